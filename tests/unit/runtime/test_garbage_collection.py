"""Pauses of the garbage collector, in processes of their own: freezing affects all objects of a process."""

import subprocess
import sys

GROWING = """
import gc, time
from sskafka.runtime.garbage_collection import ShortPauses

pauses, began = [], []

def note(phase, info):
    if info["generation"] == 2:
        began.append(time.thread_time()) if phase == "start" else pauses.append(time.thread_time() - began[-1])

gc.callbacks.append(note)
short, kept = ShortPauses(time.monotonic), []
for number in range(1_500_000):
    kept.append([kept])
    if not number % 10_000:
        short.look()
longest_s, began_s = max(pauses), time.thread_time()
gc.unfreeze()
gc.collect()
print(longest_s, time.thread_time() - began_s)
"""

DELETED = """
import gc, weakref
from sskafka.runtime.garbage_collection import THAW_S, ShortPauses

class Topic:
    def __init__(self):
        self.itself = self

now_s = 0.0
short = ShortPauses(lambda: now_s)
topic = Topic()
deleted = weakref.ref(topic)
gc.collect()
short.look()
del topic
gc.collect()
print("frozen" if deleted() is not None else "gone")
now_s = THAW_S
short.look()
gc.collect()
print("frozen" if deleted() is not None else "gone")
"""


def output_of(script: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout.split()


def test_pauses_do_not_grow_with_what_a_process_remembers() -> None:
    longest_s, all_at_once_s = map(float, output_of(GROWING))
    assert longest_s < all_at_once_s / 2


def test_cycles_of_frozen_objects_are_collected_after_a_while() -> None:
    assert output_of(DELETED) == ["frozen", "gone"]
