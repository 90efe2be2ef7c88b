"""One member of a classic group, as its last JoinGroup described it."""

from typing import NamedTuple

from sskafka.model.coordination import Completion

Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignment strategies with what the member says in each, the most wanted first."""


class Client(NamedTuple):
    """Where a request came from."""

    client_id: str = ""
    host: str = ""


class ClassicMember:
    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: Client,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client = client
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Completion | None = None
        self.awaiting_sync: Completion | None = None
        self.is_new = False
        """It has not heard of its first generation yet, so it cannot heartbeat."""

    def __repr__(self) -> str:
        return f"ClassicMember({self.member_id!r})"

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_waiting(self) -> bool:
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The most wanted of the candidates, each of which the member supports."""
        return next(name for name, _ in self.protocols if name in candidates)
