"""The findings of a data directory check and their remedies."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from sskafka.model.ids import TopicPartition


class Remedy(Enum):
    NONE_NEEDED = "note"
    """Not an error: the broker handles it at its next start."""
    REBUILD = "rebuild"
    """Can be rebuilt from the batches."""
    TRUNCATE = "truncate"
    """A torn end: nothing after the truncation point can be read."""
    DATA_LOSS = "data loss"
    """Only truncation helps, and it would remove valid batches."""
    REMOVE = "remove"
    """A useless file; the broker works without it."""
    MANUAL = "manual"
    """Needs a human decision."""


class Finding(NamedTuple):
    path: str
    text: str
    remedy: Remedy

    @property
    def is_damage(self) -> bool:
        return self.remedy is not Remedy.NONE_NEEDED


@dataclass(slots=True)
class PartitionReport:
    name: str
    """The name of the directory."""
    topic_partition: TopicPartition
    segments: int = 0
    batches: int = 0
    start_offset: int = 0
    end_offset: int = 0
    size_bytes: int = 0
    gaps: int = 0
    """Gaps between batches. Compaction leaves them, and so does a wrong offset in the last batch."""
    has_old_formats: bool = False
    findings: list[Finding] = field(default_factory=list)

    @property
    def damages(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_damage]

    def needs(self, *remedies: Remedy) -> bool:
        return any(finding.remedy in remedies for finding in self.findings)


@dataclass(slots=True)
class DirectoryReport:
    """`findings` are those that concern no single partition."""

    path: str
    partitions: list[PartitionReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def all_findings(self) -> list[Finding]:
        return [*self.findings, *(finding for partition in self.partitions for finding in partition.findings)]

    @property
    def damages(self) -> list[Finding]:
        return [finding for finding in self.all_findings if finding.is_damage]
