"""The voters of the quorum, as an immutable set: a changed quorum is a new value."""

from collections.abc import Iterable

from sskafka.model.values import value

NO_NODE = -1


@value
class VoterSet:
    ids: tuple[int, ...]

    @classmethod
    def of(cls, ids: Iterable[int]) -> "VoterSet":
        return cls(tuple(sorted(set(ids))))

    def __contains__(self, node_id: int) -> bool:
        return node_id in self.ids

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def majority(self) -> int:
        return len(self.ids) // 2 + 1

    def others(self, node_id: int) -> tuple[int, ...]:
        return tuple(voter for voter in self.ids if voter != node_id)

    def is_only(self, node_id: int) -> bool:
        return self.ids == (node_id,)
