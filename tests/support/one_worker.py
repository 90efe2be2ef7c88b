"""Programs that a test fetches or installs: one worker of pytest-xdist does it while the others wait."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_worker_at_a_time() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / f"sskafka-tests-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
