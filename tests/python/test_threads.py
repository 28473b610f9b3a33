"""Threads start or fail, however little memory there is: no start waits forever for a thread's first step."""

import os
import subprocess
import sys
import textwrap

GUARD_SECONDS = 120

# A child for each limit, because memory is not given back. Prints the outcome of each: done, the exception's name, or
# hangs.
SWEEP = """
    import os, resource, signal, threading
    from headrace.cli import stopping

    STACK = 1 << 20
    threading.stack_size(STACK)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    for more in range(-64 << 10, 192 << 10, 4 << 10):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            resource.setrlimit(resource.RLIMIT_AS, (used + STACK + more, used + STACK + more))
            try:
                stopping.stopped(lambda: None)
                os._exit(0)
            except MemoryError:
                os._exit(1)
            except RuntimeError:
                os._exit(2)
        status = os.waitpid(child, 0)[1]
        print("hangs" if os.WIFSIGNALED(status) else ("done", "MemoryError", "RuntimeError")[os.WEXITSTATUS(status)])
"""


def test_work_starts_or_fails_at_every_limit_of_memory():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SWEEP)],
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_SECONDS,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "HEADRACE_DEVICES": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"RuntimeError", "MemoryError", "done"}
