"""The daemon of Python workers: what it imports before it forks."""

import subprocess
import sys

import pytest

from sskafka.pipelines.worker_daemon import PRELOADED, TASKS


def modules_of(worker: str) -> set[str]:
    program = (
        f"import sys; from sskafka.pipelines import worker_daemon as it; it.preload({worker!r}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("worker", PRELOADED)
def test_workers_find_their_modules_imported(worker: str) -> None:
    loaded = modules_of(worker)
    assert {worker, *PRELOADED[worker]} <= loaded
    assert "numpy.random" not in loaded, "all processes that are forked would draw the same numbers"


def test_collections_in_workers_do_not_examine_imported_objects() -> None:
    program = (
        "import gc; from sskafka.pipelines import worker_daemon as it; "
        f"it.daemon.manager = lambda: print(gc.get_freeze_count(), len(gc.get_objects())); it.main([{TASKS!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    frozen, examined = map(int, done.stdout.split())
    assert examined < frozen / 100


def test_a_worker_whose_socket_java_has_closed_ends_without_a_stack_trace() -> None:
    """Spark's own worker, which flushes to a socket that nobody reads any more."""
    program = (
        "import os, socket, sys, threading; from sskafka.pipelines import worker_daemon as it\n"
        "import pyspark.worker\n"
        "os.environ['PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE'] = '1'\n"
        "def manager():\n"
        "    ours, javas = socket.socketpair()\n"
        "    def work(infile, outfile):\n"
        "        javas.close(); outfile.write(b'x')\n"
        "    pyspark.worker.main = work\n"
        "    print(it.daemon.worker(ours, True))\n"
        f"it.daemon.manager = manager; it.main([{TASKS!r}])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_processes_that_only_look_for_the_source_load_nothing_more() -> None:
    loaded = modules_of("pyspark.sql.worker.lookup_data_sources")
    assert "pyspark.sql.worker.lookup_data_sources" in loaded
    assert "pyarrow" not in loaded
