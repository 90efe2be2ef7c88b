"""What garbage collections of Spark's Python processes skip."""

import subprocess
import sys

PROGRAM = """
import gc
from sskafka.pipelines.connector import garbage

class Node:
    pass

def make_cycle():
    node = Node()
    node.itself = node

for _ in range(garbage.FREEZES_MAX):
    garbage.skip_imported_objects()
frozen = gc.get_freeze_count()
assert frozen > 5_000, frozen
assert len(gc.get_objects()) < frozen / 100
make_cycle()
garbage.skip_imported_objects()
assert gc.get_freeze_count() == frozen
assert gc.collect() > 0, "garbage of later tasks is collected"
"""


def test_imported_objects_are_skipped_and_garbage_of_later_tasks_is_not() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
