"""Running one program over many inputs, each in a process that sees one device: what `headrace each` does.

`commands` says what is run, `slots` on what, `child` is one process and its group, `guard` ends them if this process is
killed, `logs` is where they write, `runner` keeps all slots busy.
"""

from headrace.each.commands import Command, combine, gather_inputs
from headrace.each.logs import Again
from headrace.each.runner import Outcome, Report, Rules, Runner
from headrace.each.slots import Slot, cpu_slots, gpu_slots

__all__ = [
    "Again",
    "Command",
    "Outcome",
    "Report",
    "Rules",
    "Runner",
    "Slot",
    "combine",
    "cpu_slots",
    "gather_inputs",
    "gpu_slots",
]
