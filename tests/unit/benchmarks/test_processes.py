"""CPU time and memory of this process and its children, from /proc."""

import os
import subprocess
import sys

from benchmarks.processes import cpu_between, read_cpu, read_rss_bytes

BURN = "import time\nend = time.process_time() + 0.1\nwhile time.process_time() < end: pass\n"


def test_counts_children_that_have_ended() -> None:
    before = read_cpu(os.getpid())
    subprocess.run([sys.executable, "-c", BURN], check=True)
    spent = cpu_between(before, read_cpu(os.getpid()))
    assert spent.seconds >= 0.08
    assert spent.busiest_thread_seconds < spent.seconds


def test_counts_children_that_still_run() -> None:
    waits = BURN + "print('burnt', flush=True)\ninput()\n"
    before = read_cpu(os.getpid())
    with subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        spent = cpu_between(before, read_cpu(os.getpid()))
        both, alone = read_rss_bytes(os.getpid()), read_rss_bytes(child.pid)
        child.communicate(b"\n")
    assert spent.busiest_thread_seconds >= 0.08
    assert both > alone > 1_000_000


def test_a_process_that_has_ended_counts_as_zero() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert read_cpu(child.pid).seconds == 0
    assert read_rss_bytes(child.pid) == 0
