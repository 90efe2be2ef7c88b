"""/api/v1/lab: the lab's files on this broker, for the console: settings, the mirror of quorum-state, the journal."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from sskafka.lab.journal import Journal
from sskafka.raft.voters import NO_NODE
from sskafka.servers.http.context import HttpContext, at_most
from sskafka.servers.http.describe_check import check_may_describe

ENTRIES_MAX = 500


class QuorumStateMirror(BaseModel):
    leader_id: Annotated[int, Field(description="The last leader that this voter has accepted; -1: none.")]
    leader_epoch: int
    voted_id: Annotated[int, Field(description="The candidate that this voter has voted for in its epoch; -1: none.")]


class JournalLine(BaseModel):
    offset: int
    epoch: int
    type: str
    payload: dict[str, Any]


class LabState(BaseModel):
    node_id: int
    leader_id: Annotated[int, Field(description="The leader that this broker knows now; -1: none.")]
    settings: Annotated[dict[str, str], Field(description="Settings that only the lab has.")]
    journal_file: Annotated[str | None, Field(description="null: this broker keeps no readable files.")]
    quorum_state: Annotated[QuorumStateMirror | None, Field(description="The readable mirror; null if there is none.")]
    lines: Annotated[int, Field(description="Lines of the journal.")]
    journal: Annotated[list[JournalLine], Field(description="Newest first.")]


def routes(
    context: HttpContext, journal_file: str | None, quorum_state_file: str | None, settings: dict[str, str]
) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["inspection"])
    journal = Journal(journal_file)
    turn = asyncio.Lock()

    @router.get("/lab", summary="The lab on this broker: its settings, last vote and journal of topics")
    async def lab(
        request: Request,
        limit: Annotated[int, Query(ge=1, description=f"At most {ENTRIES_MAX}."), at_most(ENTRIES_MAX)] = 100,
    ) -> LabState:
        await check_may_describe(context, request, "the lab's files")
        async with turn:
            lines = journal.end().offset + 1
            entries = journal.after(lines - limit - 1 if lines > limit else -1, limit)
            mirror = await asyncio.to_thread(_mirror, quorum_state_file)
        return LabState(
            node_id=context.configuration.node_id,
            leader_id=context.leader_id,
            settings=settings,
            journal_file=journal_file,
            quorum_state=mirror,
            lines=lines,
            journal=[JournalLine(**{**entry._asdict(), "payload": dict(entry.payload)}) for entry in reversed(entries)],
        )

    return router


def _mirror(path: str | None) -> QuorumStateMirror | None:
    """Return the contents of the file; None if there is none. The file is replaced atomically, so it is never
    half-written."""
    if path is None:
        return None
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
        names = ("leader_id", "leader_epoch", "voted_id")
        return QuorumStateMirror(**{name: int(fields.get(name, NO_NODE)) for name in names})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
