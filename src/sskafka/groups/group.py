"""What every kind of group has in common; a shard keeps them in one store, whatever their kind.

Offsets are committed, fetched, deleted and expired in the same way for all of them: `sskafka.groups.offset_requests`
asks a group only what is declared here.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from sskafka.groups.offsets import CommittedOffset
from sskafka.groups.timeline import Timeline
from sskafka.model.coordination import Completion
from sskafka.model.ids import Uuid

UNKNOWN_MEMBER = ""
NO_GENERATION = -1
CLASSIC = "classic"
CONSUMER = "consumer"


class Committer(NamedTuple):
    """Who says how far a group has read."""

    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None
    generation: int = NO_GENERATION
    """Of a classic group; the member's epoch in a consumer group."""
    is_transactional: bool = False
    is_too_old_for_epochs: bool = False
    """It sent an OffsetCommit of a version that knows of no member epochs."""

    @property
    def is_unnamed(self) -> bool:
        """Nobody's commit: of an administrator, or of a consumer that picks its partitions itself."""
        return self.generation == NO_GENERATION and self.member_id == UNKNOWN_MEMBER and self.instance_id is None


class Group(Protocol):
    group_id: str

    @property
    def timeline(self) -> Timeline: ...

    @property
    def type_name(self) -> str:
        """As ListGroups spells it: classic or consumer."""
        ...

    @property
    def protocol_type(self) -> str: ...

    @property
    def state_name(self) -> str: ...

    @property
    def is_empty(self) -> bool:
        """It has no members: it may be deleted. Members that were only given an id do not count."""
        ...

    def check_commit(self, committer: Committer, partitions: Iterable[tuple[Uuid | None, int]]) -> None:
        """Raises KafkaError for a committer whose word does not count; a topic that is gone has no id."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError for a member that the group no longer has."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether members read the topic; True when that cannot be known."""
        ...

    def expires_offset(self, topic: str, offset: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
        """Whether nobody has needed the offset for so long."""
        ...

    def waiting(self) -> list[Completion]:
        """Everyone whose answer the group holds back."""
        ...
