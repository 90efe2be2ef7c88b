"""Streams whose reader has gone, such as `head` in a shell pipeline.

Only then does a BrokenPipeError mean that a command may end without a word. Sockets raise the same error.
"""

import select
import sys
from typing import TextIO


def closed_streams() -> list[TextIO]:
    return [stream for stream in (sys.stdout, sys.stderr) if is_closed(stream)]


def is_closed(stream: TextIO) -> bool:
    """Return whether nobody can read what is written to the stream."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # a test has replaced the stream
        return False
    poll = select.poll()
    poll.register(descriptor, 0)  # errors are always reported
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
