"""Two records of the same script, compared field by field."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from differential.exchange import Exchange
from differential.normalise import Normaliser

_INDEX = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Difference:
    script: str
    number: int
    exchange: Exchange
    """With Apache Kafka."""
    ours: Exchange
    """The same request with SSKafka."""
    place: str
    """Names and indexes that lead to the field."""
    kafka: Any
    sskafka: Any

    @property
    def field(self) -> str:
        """The place without its indexes."""
        return _INDEX.sub("", self.place)


def compare(script: str, kafka: Sequence[Exchange], sskafka: Sequence[Exchange]) -> Iterator[Difference]:
    """The differences, in the order of the exchanges."""
    theirs, ours = Normaliser(), Normaliser()
    for number, (left, right) in enumerate(zip_longest(kafka, sskafka)):
        if left is None or right is None or (left.api, left.version) != (right.api, right.version):
            yield Difference(script, number, left or right, right or left, "", str(left), str(right))
            return
        pairs = compare_trees(theirs.tree(left.answer, left.version), ours.tree(right.answer, right.version))
        for place, value, other in pairs:
            yield Difference(script, number, left, right, place, value, other)


def report(differences: Iterable[Difference]) -> str:
    """The differences in words, those of several versions of an API together."""
    versions: dict[tuple[str, ...], list[int]] = {}
    for one in differences:
        where = f"{one.script}: {one.exchange.api}", one.exchange.note, one.place or "the answer"
        versions.setdefault((*where, _short(one.kafka), _short(one.sskafka)), []).append(one.exchange.version)
    return "\n".join(
        f"{api} v{_spans(found)}{f' ({note})' if note else ''}, {place}:\n"
        f"    Apache Kafka  {kafka}\n"
        f"    SSKafka       {sskafka}"
        for (api, note, place, kafka, sskafka), found in versions.items()
    )


def _spans(versions: list[int]) -> str:
    low, high = min(versions), max(versions)
    return str(low) if low == high else f"{low}-{high}"


# What identifies the elements of an array, in order of preference.
KEYS = (
    "api_key", "name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "resource_name", "key",
    "user", "partition_index", "partition", "partition_id", "index", "node_id", "broker_id", "replica_id", "member_id",
    "producer_id", "feature",
)  # fmt: skip
ABSENT = "absent"


def compare_trees(left: Any, right: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Places where two trees differ, with both values."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            yield from compare_trees(left.get(name), right.get(name), f"{place}.{name}" if place else name)
    elif isinstance(left, list) and isinstance(right, list):
        yield from _compare_lists(left, right, place)
    elif left != right:
        yield place, left, right


def _compare_lists(left: list[Any], right: list[Any], place: str) -> Iterator[tuple[str, Any, Any]]:
    """Element by element where the elements correspond, by key where some are missing or moved."""
    if (ours := _keys(left)) is not None and (theirs := _keys(right)) is not None and ours != theirs:
        lefts, rights = dict(zip(ours, left, strict=True)), dict(zip(theirs, right, strict=True))
        for key in dict.fromkeys([*ours, *theirs]):
            yield from compare_trees(lefts.get(key, ABSENT), rights.get(key, ABSENT), f"{place}[{key}]")
    elif len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from compare_trees(one, other, f"{place}[{index}]")
    else:
        yield place, left, right


def _keys(elements: list[Any]) -> list[Any] | None:
    """The keys of structs that have unique ones."""
    if not elements or not all(isinstance(one, dict) for one in elements):
        return None if elements else []
    for name in KEYS:
        if name in elements[0] and len({one[name] for one in elements}) == len(elements):
            return [one[name] for one in elements]
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:300]} ... {text[-90:]}"
