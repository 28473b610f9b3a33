"""Runs one program over many inputs, each in a process that sees one device: the engine of `headrace each`.

`commands` defines what is run, `slots` where, `child` is one process and its group, `guard` ends the groups if this
process is killed, `logs` stores output, and `runner` keeps all slots busy.
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
