"""The HTTP process: `python -m sskafka.servers.http LINK LISTENER`, two inherited sockets, started by a broker.

It ends with its broker, whatever becomes of that: the kernel kills it when the broker is killed, and the end of the
private socket tells it to finish the requests at hand and go. Ctrl+C in a terminal reaches the broker, which decides.
All of that must hold before anything that takes time is imported.
"""

import contextlib
import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Where the kernel can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    from sskafka.servers.http.process import main  # noqa: PLC0415

    main(*(int(argument) for argument in sys.argv[1:]))


if __name__ == "__main__":
    run()
