"""Plans of reassignments in the JSON format of `kafka-reassign-partitions`.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3, 1], "log_dirs": ["any", ...]}]}
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sskafka.cli.failures import CommandError
from sskafka.model.ids import TopicPartition

VERSION = 1
ANY_DIRECTORY = "any"
_EXAMPLE = "`sskafka cluster reassign --generate` prints an example"


def plan_text(plan: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    partitions = [
        {
            "topic": topic,
            "partition": number,
            "replicas": list(replicas),
            "log_dirs": [ANY_DIRECTORY] * len(replicas),
        }
        for (topic, number), replicas in sorted(plan.items())
    ]
    return json.dumps({"version": VERSION, "partitions": partitions})


def read_plan(file: Path) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of each partition; raise CommandError if the file is not a plan."""
    try:
        read = json.loads(file.read_text())
    except ValueError as error:
        raise CommandError(f"{file} is not JSON: {error}", _EXAMPLE) from error
    if not isinstance(read, dict) or read.get("version", VERSION) != VERSION:
        raise CommandError(f"{file} is not a plan of version {VERSION}", _EXAMPLE)
    plan: dict[TopicPartition, tuple[int, ...]] = {}
    entries = read.get("partitions")
    if not isinstance(entries, list) or not entries:
        raise CommandError(f"{file} has no partitions", _EXAMPLE)
    for number, entry in enumerate(entries):
        partition, replicas = _parsed(file, number, entry)
        if partition in plan:
            raise CommandError(f"{file} has {partition} twice", "remove one of them")
        plan[partition] = replicas
    return plan


def _parsed(file: Path, number: int, entry: Any) -> tuple[TopicPartition, tuple[int, ...]]:
    match entry:
        case {"topic": str(topic), "partition": int(partition), "replicas": [_, *_] as replicas} if all(
            isinstance(replica, int) for replica in replicas
        ):
            directories = entry.get("log_dirs") or []
            if any(directory != ANY_DIRECTORY for directory in directories):
                raise CommandError(
                    f"{file}: entry {number} names log directories", "this command places replicas in any directory"
                )
            return TopicPartition(topic, partition), tuple(replicas)
        case _:
            raise CommandError(f"{file}: entry {number} is not a topic, a partition and replicas", _EXAMPLE)
