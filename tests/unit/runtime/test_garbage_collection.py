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

EXAMINED = """
import gc, sys
from sskafka.runtime.garbage_collection import ShortPauses

examined = []
gc.callbacks.append(lambda phase, info: examined.append(len(gc.get_objects())) if info["generation"] == 2 else None)
short, kept = ShortPauses(lambda: 0.0), []
gc.collect()
short.look()
examined.clear()
for number in range(300_000):
    kept.append([kept])
    if not number % 10_000:
        short.look()
print(max(examined))
"""

DELETED = """
import gc, weakref
from sskafka.runtime.garbage_collection import THAW_S, ShortPauses

class Topic:
    def __init__(self):
        self.itself = self

now_s, blocks = 0.0, 1000
short = ShortPauses(lambda: now_s, lambda: blocks)
topic = Topic()
deleted = weakref.ref(topic)
gc.collect()
short.look()
del topic
gc.collect()
print("frozen" if deleted() is not None else "gone")
now_s, blocks = THAW_S, 1499
short.look()
gc.collect()
print("frozen" if deleted() is not None else "gone")
blocks = 1500
short.look()
gc.collect()
print("frozen" if deleted() is not None else "gone")
"""

STEADY = """
import gc, time
from sskafka.runtime.garbage_collection import THAW_S, ShortPauses

pauses, began = [], []

def note(phase, info):
    if info["generation"] == 2:
        began.append(time.thread_time()) if phase == "start" else pauses.append(time.thread_time() - began[-1])

now_s, kept = 0.0, [[number] for number in range(500_000)]
short = ShortPauses(lambda: now_s)
gc.collect()
short.look()
gc.callbacks.append(note)
for _ in range(10):
    now_s += THAW_S
    gc.collect()
    short.look()
longest_s, began_s = max(pauses), time.thread_time()
gc.unfreeze()
gc.collect()
print(longest_s, time.thread_time() - began_s)
"""

REQUESTS = """
import gc, sys
from collections import deque
from sskafka.runtime.garbage_collection import ShortPauses

class Request:
    def __init__(self):
        self.slot = [self]

short, waiting = ShortPauses(lambda: 0.0), deque(maxlen=200)
gc.collect()
short.look()
before = sys.getallocatedblocks()
for number in range(300_000):
    waiting.append(Request())
    if not number % 5_000:
        gc.collect()
    elif number % 5_000 == 4_999:
        short.look()
print(sys.getallocatedblocks() - before)
"""


def output_of(script: str) -> list[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout.split()


def test_pauses_do_not_grow_with_what_a_process_remembers() -> None:
    longest_s, all_at_once_s = map(float, output_of(GROWING))
    assert longest_s < all_at_once_s / 2


def test_a_full_collection_examines_few_new_objects() -> None:
    """With Python's thresholds it examined 100,000 of them: a pause of 50 ms in a broker."""
    (examined,) = map(int, output_of(EXAMINED))
    assert examined < 50_000


def test_cycles_of_frozen_objects_are_collected_when_the_process_has_grown() -> None:
    assert output_of(DELETED) == ["frozen", "frozen", "gone"]


def test_a_process_that_does_not_grow_is_not_examined_again() -> None:
    longest_s, all_at_once_s = map(float, output_of(STEADY))
    assert longest_s < all_at_once_s / 5


def test_cycles_that_became_garbage_since_the_full_collection_are_not_frozen() -> None:
    """Requests that wait and then are done: 300,000 of them, 200 at a time."""
    (blocks,) = map(int, output_of(REQUESTS))
    assert blocks < 80_000, "more than those that were waiting at a full collection"
