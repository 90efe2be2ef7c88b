"""/kraft/v1: the node's Raft state machine through the lab's HTTP API. A vote granted here is a real vote.

Offsets are those of the readable journal; only its changes count when a candidate's log is compared with ours.
"""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from sskafka.lab.journal import CREATE_TOPIC, Journal, JournalEntry
from sskafka.raft.voters import NO_NODE
from sskafka.servers.http.context import NOT_THE_LEADER, HttpContext, at_most, leader_only
from sskafka.servers.http.lab_names import BrokerId
from sskafka.servers.http.problems import NOT_FOUND, Problem, documented

EPOCH_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 2
RECORDS_MAX = 10_000

Epoch = Annotated[int, Field(ge=0, le=EPOCH_MAX)]
LastEpoch = Annotated[int, Field(ge=-1, le=EPOCH_MAX, description="-1 for an empty log.")]
LastOffset = Annotated[int, Field(ge=-1, le=OFFSET_MAX)]


class VoteRequest(BaseModel):
    candidate_epoch: Epoch
    last_offset: LastOffset
    last_offset_epoch: LastEpoch
    candidate_id: BrokerId


class VoteResponse(BaseModel):
    granted: bool
    leader_epoch: int | None = Field(default=None, description="With a rejection: epoch of the last known leader.")
    leader_id: str | int | None = Field(default=None, description="With a rejection; -1 if no leader is known.")


class BeginEpochRequest(BaseModel):
    leader_id: BrokerId
    leader_epoch: Epoch


class BeginEpochResponse(BaseModel):
    accepted: bool
    leader_epoch: int | None = None
    leader_id: str | int | None = None


class FetchMetadataRequest(BaseModel):
    last_offset: LastOffset = -1
    last_offset_epoch: LastEpoch = -1
    max_batch_size: Annotated[int, Field(ge=1), at_most(RECORDS_MAX)] = 100
    follower_broker_id: BrokerId | None = None


class MetadataRecord(BaseModel):
    offset: int
    epoch: int
    action: str
    payload: dict[str, Any]


class FetchMetadataResponse(BaseModel):
    records: list[MetadataRecord]
    diverging_epoch: int | None = Field(default=None, description="Present if the logs diverge.")
    diverging_offset: int | None = Field(default=None, description="The last offset that both may share.")


def routes(context: HttpContext, journal_file: str | None) -> APIRouter:
    """Return the routes; `journal_file` is None if this broker keeps no journal."""
    journal = Journal(journal_file)
    router = APIRouter(prefix="/kraft/v1", tags=["lab"])

    @router.post("/voteRequest", summary="Ask for a vote", response_model_exclude_none=True)
    async def vote_request(request: VoteRequest) -> VoteResponse:
        is_behind = journal.end().is_ahead_of(request.last_offset, request.last_offset_epoch)
        answer = await context.link.ask(
            "vote", candidate=request.candidate_id, epoch=request.candidate_epoch, up_to_date=not is_behind
        )
        return VoteResponse(granted=True) if answer["granted"] else VoteResponse(granted=False, **_leader(answer))

    @router.post("/beginQuorumEpoch", summary="Announce a leader", response_model_exclude_none=True)
    async def begin_quorum_epoch(request: BeginEpochRequest) -> BeginEpochResponse:
        answer = await context.link.ask("begin_epoch", leader=request.leader_id, epoch=request.leader_epoch)
        if answer["accepted"]:
            return BeginEpochResponse(accepted=True)
        return BeginEpochResponse(accepted=False, **_leader(answer))

    @router.post(
        "/fetchMetadata",
        summary="Read the journal of topics",
        response_model_exclude_none=True,
        responses={**NOT_THE_LEADER, **documented({NOT_FOUND: "This broker keeps no journal."})},
        dependencies=[leader_only(context)],
    )
    async def fetch_metadata(request: FetchMetadataRequest) -> FetchMetadataResponse:
        if not journal.is_kept:
            raise Problem(NOT_FOUND, "this broker keeps no journal: set metadata.log.dir apart from log.dirs")
        divergence = journal.divergence(request.last_offset, request.last_offset_epoch)
        if divergence is not None:
            return FetchMetadataResponse(
                records=[], diverging_epoch=divergence.epoch, diverging_offset=divergence.offset
            )
        entries = journal.after(request.last_offset, request.max_batch_size)
        return FetchMetadataResponse(records=[_record(entry) for entry in entries])

    return router


def _leader(answer: dict[str, Any]) -> dict[str, Any]:
    """Return leader and epoch; ids are text in this API, and -1 stands for nobody."""
    leader_id = answer["leader_id"]
    return {"leader_epoch": answer["leader_epoch"], "leader_id": leader_id if leader_id == NO_NODE else str(leader_id)}


def _record(entry: JournalEntry) -> MetadataRecord:
    payload = dict(entry.payload)
    if entry.type == CREATE_TOPIC:
        payload.pop("partition_count", None)
    return MetadataRecord(offset=entry.offset, epoch=entry.epoch, action=entry.type, payload=payload)
