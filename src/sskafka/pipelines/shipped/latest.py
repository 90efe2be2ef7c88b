"""Keys that are set, changed and deleted, and the resulting table."""

import random

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.shipped.exercise import Answer, Exercise, Message, Task
from sskafka.pipelines.shipped.reading import delta_rows

_RECORDS_A_KEY = 8
_DELETED = 0.15


def exercise(task: Task) -> Exercise:
    """Every key has several values; some keys are deleted, and some of those are set again."""
    chance = random.Random(task.seed)
    table: dict[str, str] = {}
    messages = []
    for number in range(task.records):
        key = f"key-{chance.randrange(max(1, task.records // _RECORDS_A_KEY))}"
        value = None if chance.random() < _DELETED else f"value {number} ü"
        messages.append(Message(key, None if value is None else value.encode()))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return Exercise({"records": messages}, list(table.items()), _found)


def _found(pipeline: Pipeline, bootstrap: str) -> Answer:
    return [(row["key"], row["value"]) for row in delta_rows(pipeline)]
