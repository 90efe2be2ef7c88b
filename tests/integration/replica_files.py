"""Replicas compared by what is in their files: the surest sight of a divergence."""

from hashlib import sha256
from pathlib import Path

from sskafka.records.batch import iter_headers


def stored_batches(data_directory: Path, topic: str, partition: int) -> list[tuple[int, int, str]]:
    """Base offset, leader epoch and digest of each batch in a replica's segments."""
    batches = []
    for segment in sorted((data_directory / f"{topic}-{partition}").glob("*.log")):
        content = segment.read_bytes()
        for position, header in iter_headers(content):
            batch = content[position : position + header.size_bytes]
            batches.append((header.base_offset, header.leader_epoch, sha256(batch).hexdigest()[:16]))
    return batches
