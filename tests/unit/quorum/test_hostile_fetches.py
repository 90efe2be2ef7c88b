"""Requests of strangers for the metadata log, with numbers that no node sends: the active controller goes on."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from controllers import Node, create, register, running, until

from sskafka.model.errors import ErrorCode
from sskafka.quorum.metadata_log import MetadataLog
from sskafka.quorum.snapshots import snapshot_path
from sskafka.raft.log_view import OffsetAndEpoch
from sskafka.raft.messages import FetchRequest, FetchSnapshotRequest, VoteRequest
from sskafka.storage.disk import OsDisk

STRANGER = 7
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "1000", "metadata.max.retention.bytes": "0"}
FAR = 2**63 - 1


def log_of(node: Node) -> MetadataLog:
    return node.plane._log


@asynccontextmanager
async def with_snapshot(directory: Path) -> AsyncIterator[Node]:
    async with running(OsDisk(), str(directory), OFTEN) as node:
        await register(node)
        for number in range(20):
            await create(node, f"topic-{number}")
        await until(lambda: log_of(node).start_offset > 0)
        yield node
        assert not node.failure.done(), "the controller has failed"
        await create(node, "after")


def snapshot_request(node: Node, position: int, max_bytes: int) -> FetchSnapshotRequest:
    snapshot_id = log_of(node).latest_snapshot_id()
    assert snapshot_id is not None
    return FetchSnapshotRequest(STRANGER, node.plane.leader_epoch, snapshot_id, position, max_bytes)


@pytest.mark.parametrize(
    ("position", "max_bytes", "error"),
    [
        (0, -1, ErrorCode.INVALID_REQUEST),
        (0, -(2**31), ErrorCode.INVALID_REQUEST),
        (0, 0, ErrorCode.INVALID_REQUEST),
        (-1, 100, ErrorCode.POSITION_OUT_OF_RANGE),
        (FAR, 100, ErrorCode.POSITION_OUT_OF_RANGE),
        (0, 2**31 - 1, ErrorCode.NONE),
    ],
)
def test_snapshot_fetches(tmp_path: Path, position: int, max_bytes: int, error: ErrorCode) -> None:
    async def scenario() -> None:
        async with with_snapshot(tmp_path) as node:
            response = await node.plane.ask_raft(snapshot_request(node, position, max_bytes))
            assert response.error is error

    asyncio.run(scenario())


def test_fetches_and_votes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with with_snapshot(tmp_path) as node:
            epoch, end_offset = node.plane.leader_epoch, log_of(node).end_offset
            last = FetchRequest(STRANGER, epoch, end_offset - 1, epoch, 0, 0, 100)
            for max_bytes in (-1, -(2**31), 0):
                assert (await node.plane.ask_raft(replace(last, max_bytes=max_bytes))).batches
            for offset in (-(2**63), -1, 0, FAR):
                for last_epoch in (-1, 0, epoch, 2**31 - 1):
                    for wait_ms in (-(2**31), 0):
                        odd = replace(last, fetch_offset=offset, last_fetched_epoch=last_epoch, max_wait_ms=wait_ms)
                        await node.plane.ask_raft(odd)
            for number in (-(2**31), -1, 0, epoch, 2**31 - 1):
                await node.plane.ask_raft(VoteRequest(number, number, OffsetAndEpoch(number, number), pre_vote=False))

    asyncio.run(scenario())


def test_a_snapshot_that_has_been_removed_fails_only_its_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with with_snapshot(tmp_path) as node:
            request = snapshot_request(node, 0, 100)
            os.remove(snapshot_path(log_of(node).directory, request.snapshot_id))
            response = await node.plane.ask_raft(request)
            assert response.error is ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(scenario())


def test_a_snapshot_that_has_been_cut_off_has_no_bytes_beyond_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with with_snapshot(tmp_path) as node:
            request = snapshot_request(node, 50, 100)
            os.truncate(snapshot_path(log_of(node).directory, request.snapshot_id), 10)
            response = await node.plane.ask_raft(request)
            assert (response.error, response.data) == (ErrorCode.NONE, b"")

    asyncio.run(scenario())
