"""Changes to a table of customers as Debezium writes them, and the resulting table."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.shipped.exercise import Answer, Exercise, Message, Task, as_json
from sskafka.pipelines.shipped.reading import delta_rows

_CITIES = ("Rome", "Lima", "Oslo", "Kyōto", "Accra")
_INSERTED, _DELETED = 0.35, 0.2


class Customers:
    """A table that records its changes."""

    def __init__(self, seed: int) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self._chance = random.Random(seed)
        self._last_id = 0

    def change(self) -> Message:
        draw = self._chance.random()
        if not self.rows or draw < _INSERTED:
            return self._insert()
        chosen = self._chance.choice(sorted(self.rows))
        return self._delete(chosen) if draw > 1 - _DELETED else self._update(chosen)

    def _insert(self) -> Message:
        """Insert a customer, sometimes with an id that was deleted before."""
        self._last_id += 1
        free = [number for number in range(1, self._last_id + 1) if number not in self.rows]
        return self._put("c", self._chance.choice(free[-3:]))

    def _update(self, chosen: int) -> Message:
        return self._put("u", chosen)

    def _put(self, op: str, chosen: int) -> Message:
        before = self.rows.get(chosen)
        after = {"id": chosen, "name": f"name {self._chance.randrange(1000)}", "city": self._chance.choice(_CITIES)}
        self.rows[chosen] = after
        return change_message(op, chosen, before, after)

    def _delete(self, chosen: int) -> Message:
        return change_message("d", chosen, self.rows.pop(chosen), None)


def change_message(op: str, key: int, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Message:
    return Message(str(key), as_json(op=op, before=before, after=after, source={"table": "customers"}))


def with_tombstones(changes: Iterable[Message]) -> Iterator[Message]:
    """Yield a tombstone after each deletion, as Debezium does, so that compaction removes the key."""
    for change in changes:
        yield change
        if b'"op": "d"' in (change.value or b""):
            yield Message(change.key, None)


def exercise(task: Task) -> Exercise:
    customers = Customers(task.seed)
    messages = list(with_tombstones(customers.change() for _ in range(task.records)))
    return Exercise({"changes": messages}, [tuple(row.values()) for row in customers.rows.values()], _found)


def _found(pipeline: Pipeline, bootstrap: str) -> Answer:
    return [(row["id"], row["name"], row["city"]) for row in delta_rows(pipeline)]
