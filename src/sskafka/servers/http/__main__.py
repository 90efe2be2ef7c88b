"""The HTTP process: `python -m sskafka.servers.http LINK LISTENER`, with two inherited sockets, started by a broker.

The process ends with its broker: the kernel kills it when the broker is killed, and when the private socket closes it
finishes the current requests and exits. Ctrl+C in a terminal is handled by the broker. All of this is set up before any
slow import.
"""

import contextlib
import ctypes
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, if the kernel supports that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    from sskafka.servers.http.process import main  # noqa: PLC0415

    main(*(int(argument) for argument in sys.argv[1:]))


if __name__ == "__main__":
    run()
