"""The last decision of a query's driver, as a record of the control topic. The newest record of a query counts.

    {"format": 2, "query_id", "checkpoint", "epoch", "owner", "past_owners", "batch", "phase", "offsets", "swept",
     "parts": [{"id", "producer_id", "producer_epoch", "version", "slot", "rows", "digest", "place", "fate"}]}

    phase        meaning
    ---------    -------------------------------------------------------------------------------------------------
    committed    every part of `batch` is committed; with batch -1 nothing has been decided yet
    decided      the batch will be committed in any case: every process that finds this completes it
    partial      the batch is decided, but the brokers aborted some parts afterwards (by timeout, or because an
                 administrator did). `parts` names them; the next attempt of the batch supplies them

Records of the previous format have no format number. They are read, and the next claim replaces them.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from sskafka.client.transactions import Transaction
from sskafka.pipelines.connector.errors import ConnectorError

FORMAT = 2
NO_BATCH = -1
UNKNOWN_ROWS = -1
NO_SLOT = -1
PAST_OWNERS_MAX = 64


class Phase(StrEnum):
    COMMITTED = "committed"
    DECIDED = "decided"
    PARTIAL = "partial"


class Fate(StrEnum):
    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The coordinator no longer knows the transaction, and its records can no longer be looked up."""


class Place(NamedTuple):
    """The position of a record of a transaction; a reader can check whether it is committed."""

    topic: str
    partition: int
    offset: int


class Part(NamedTuple):
    """The part of a batch that one task wrote, in a transaction that the task left open."""

    transaction: Transaction
    slot: int = NO_SLOT
    rows: int = UNKNOWN_ROWS
    digest: int = 0
    place: Place | None = None
    fate: Fate = Fate.OPEN

    @property
    def is_known(self) -> bool:
        """Whether the part can be compared with the one of another attempt of the same task."""
        return self.slot != NO_SLOT and self.rows != UNKNOWN_ROWS

    def holds_the_rows_of(self, other: "Part") -> bool:
        return self.is_known and (self.slot, self.rows, self.digest) == (other.slot, other.rows, other.digest)

    def to_fields(self) -> dict[str, Any]:
        name, producer_id, producer_epoch, version = self.transaction
        return {
            "id": name,
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "version": version,
            "slot": self.slot,
            "rows": self.rows,
            "digest": self.digest,
            "place": None if self.place is None else list(self.place),
            "fate": str(self.fate),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "Part":
        transaction = Transaction(fields["id"], fields["producer_id"], fields["producer_epoch"], fields["version"])
        place = None if fields["place"] is None else Place(*fields["place"])
        return cls(transaction, fields["slot"], fields["rows"], fields["digest"], place, Fate(fields["fate"]))


UNCOUNTED = Part(Transaction("", -1, -1), fate=Fate.COMMITTED)
"""A part whose rows were not counted: every attempt of its batch counts as the same."""


class Owner(NamedTuple):
    """The run of a query that may decide, and the pipeline run that started it, if any."""

    run: str
    session: str = ""

    def __str__(self) -> str:
        return f"{self.session}/{self.run}"


NOBODY = Owner("")


@dataclass(frozen=True, slots=True)
class Decision:
    query_id: str
    epoch: int = 0
    """Increases with every owner. Drivers and tasks of an older epoch can no longer decide."""
    owner: Owner = NOBODY
    past_owners: tuple[str, ...] = ()
    """Superseded owners. One of them that is still alive must not claim the query again."""
    batch: int = NO_BATCH
    phase: Phase = Phase.COMMITTED
    parts: tuple[Part, ...] = ()
    offsets: str = ""
    """Digest of the source offsets of `batch`, if the checkpoint could be read."""
    checkpoint: str = ""
    swept: bool = True
    """Whether the open transactions of older epochs have been aborted."""

    @property
    def is_committed(self) -> bool:
        return self.phase is Phase.COMMITTED

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        return tuple(part.transaction for part in self.parts)

    @property
    def rows(self) -> int:
        """Number of rows in the parts whose rows were counted."""
        return sum(max(0, part.rows) for part in self.parts)

    def parts_that(self, *fates: Fate) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.fate in fates)

    def holds(self, parts: Iterable[Part]) -> bool:
        """Return whether one of these transactions was decided."""
        return not {part.transaction for part in parts}.isdisjoint(self.transactions)

    def is_same_batch(self, other: "Decision") -> bool:
        """Return whether both say the same about the same batch, whoever owns the query."""
        return (self.batch, self.phase, self.parts) == (other.batch, other.phase, other.parts)

    def has_superseded(self, owner: Owner) -> bool:
        return str(owner) in self.past_owners or bool(owner.session and f"{owner.session}/" in self.past_owners)

    def claimed_by(self, owner: Owner, checkpoint: str) -> "Decision":
        return replace(
            self,
            epoch=self.epoch + 1,
            owner=owner,
            past_owners=self._past_before(owner),
            checkpoint=checkpoint or self.checkpoint,
            swept=False,
        )

    def released(self) -> "Decision":
        """Return the decision without an owner: the next run of the query claims a new epoch."""
        nobody = Owner("", self.owner.session)
        return replace(self, epoch=self.epoch + 1, owner=nobody, past_owners=self._past_before(nobody), swept=False)

    def _past_before(self, owner: Owner) -> tuple[str, ...]:
        past = list(self.past_owners)
        if self.owner.run:
            past.append(str(self.owner))
        if self.owner.session and self.owner.session != owner.session:
            past.append(f"{self.owner.session}/")
        return tuple(dict.fromkeys(past))[-PAST_OWNERS_MAX:]

    def decided(self, batch: int, parts: Iterable[Part], offsets: str) -> "Decision":
        listed = tuple(parts)
        phase = Phase.DECIDED if listed else Phase.COMMITTED
        return replace(self, batch=batch, phase=phase, parts=listed, offsets=offsets)

    def settled(self, parts: Iterable[Part]) -> "Decision":
        """Return the decision with the outcome of each part."""
        listed = tuple(parts)
        whole = all(part.fate is Fate.COMMITTED for part in listed)
        return replace(self, parts=listed, phase=Phase.COMMITTED if whole else Phase.PARTIAL)

    def declared(self, batch: int, *, written: bool) -> "Decision":
        """Return the decision after which the next attempt of the batch is dropped, or written completely."""
        last, parts = (batch, (UNCOUNTED,)) if written else (batch - 1, ())
        return replace(self, batch=last, phase=Phase.COMMITTED, parts=parts, offsets="")

    def of_another_query(self, query_id: str) -> "Decision":
        """Return the decision for a new checkpoint with the same name, which starts with batch 0."""
        return replace(
            self, query_id=query_id, batch=NO_BATCH, phase=Phase.COMMITTED, parts=(), offsets="", checkpoint=""
        )

    def to_json(self) -> bytes:
        return json.dumps(
            {
                "format": FORMAT,
                "query_id": self.query_id,
                "checkpoint": self.checkpoint,
                "epoch": self.epoch,
                "owner": list(self.owner),
                "past_owners": list(self.past_owners),
                "batch": self.batch,
                "phase": str(self.phase),
                "offsets": self.offsets,
                "swept": self.swept,
                "parts": [part.to_fields() for part in self.parts],
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Decision":
        fields = json.loads(text)
        version = fields.get("format", 1)
        if version == 1:
            return _from_first_format(fields)
        if version != FORMAT:
            raise ConnectorError(
                f"the control topic contains a decision in format {version}, which a newer version of sskafka wrote; "
                f"this one reads formats 1 and {FORMAT}. Use the newer version for this query"
            )
        return cls(
            query_id=fields["query_id"],
            epoch=fields["epoch"],
            owner=Owner(*fields["owner"]),
            past_owners=tuple(fields["past_owners"]),
            batch=fields["batch"],
            phase=Phase(fields["phase"]),
            parts=tuple(Part.from_fields(part) for part in fields["parts"]),
            offsets=fields["offsets"],
            checkpoint=fields["checkpoint"],
            swept=fields["swept"],
        )


def _from_first_format(fields: dict[str, Any]) -> Decision:
    """Read a record of the previous format, which has no row counts.

    A repeated batch counts as the same, and a lost part stops the query."""
    is_committed = fields["is_committed"]
    fate = Fate.COMMITTED if is_committed else Fate.OPEN
    return Decision(
        query_id=fields["query_id"],
        owner=Owner(fields["run"]),
        past_owners=tuple(f"/{run}" for run in fields["past_runs"]),
        batch=fields["batch"],
        phase=Phase.COMMITTED if is_committed else Phase.DECIDED,
        parts=tuple(Part(Transaction(*one), fate=fate) for one in fields["transactions"]) or (UNCOUNTED,),
        swept=False,
    )
