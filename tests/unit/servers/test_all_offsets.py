"""All offsets of a group are answered in steps, in every version, and only those of topics that the client may see."""

import asyncio
import gc
from collections.abc import Iterator
from time import thread_time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from steps import finished

from sskafka.coordination.group_coordinator import GroupCoordinator
from sskafka.groups.offset_requests import AllOffsets
from sskafka.groups.offsets import CommittedOffset
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.model.coordination import Completion
from sskafka.model.errors import ErrorCode
from sskafka.model.ids import TopicPartition
from sskafka.servers.kafka.cluster_view import ClusterView
from sskafka.servers.kafka.frames import response_frame_in_slices
from sskafka.servers.kafka.handlers.group_offsets import GroupOffsetHandlers
from sskafka.servers.kafka.request import Request
from sskafka.wire.apis import ApiKey
from sskafka.wire.codec import decode
from sskafka.wire.header import decode_response_header
from sskafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

OFFSETS = 10_000
STEP_MS_MAX = 8
TOPIC_ID = b"t" * 16


class OneGroup:
    """A coordinator that answers at once."""

    def __init__(self, found: AllOffsets) -> None:
        self._found = found

    def fetch_offsets(self, group_id: str, partitions: object, stable: bool, member: object, done: Completion) -> None:
        if group_id == "g":
            done.answer(self._found)
        else:
            done.refuse(ErrorCode.NOT_COORDINATOR)


@pytest.fixture(autouse=True)
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Futures need a loop; it does not run."""
    made = asyncio.new_event_loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: made)
    yield
    made.close()


def handlers(found: AllOffsets) -> GroupOffsetHandlers:
    image = ClusterImage()
    image.topics_by_name["t"] = TopicImage("t", TOPIC_ID, {})
    view = cast(ClusterView, SimpleNamespace(image=image))
    return GroupOffsetHandlers(cast(GroupCoordinator, OneGroup(found)), view)


def request_of(version: int) -> Request:
    fake = SimpleNamespace(
        version=version, may_on_group=lambda *_: True, may_see=lambda kind, name: not name.startswith("hidden")
    )
    return cast(Request, fake)


def answer(found: AllOffsets, version: int) -> OffsetFetchResponse:
    message = OffsetFetchRequest("g", topics=None)
    if version >= 8:
        groups = [OffsetFetchRequestGroup(name, topics=None) for name in ("g", "other", "g")]
        message = OffsetFetchRequest(groups=groups)
    response = finished(handlers(found).fetch_in_steps(message, request_of(version)))
    frame = finished(response_frame_in_slices(ApiKey.OFFSET_FETCH, version, 1, response))
    whole = bytes(frame) if isinstance(frame, bytes) else b"".join(frame)
    _, position = decode_response_header(ApiKey.OFFSET_FETCH, version, whole[4:])
    return decode(OffsetFetchResponse, version, whole[4:], position)


@pytest.mark.parametrize("version", range(2, 11))
def test_the_answer_has_all_visible_offsets(version: int) -> None:
    names = ["t", "u", "hidden"]
    offsets = {TopicPartition(name, index): CommittedOffset(index, 4, "m") for name in names for index in range(3)}
    response = answer(AllOffsets(offsets, {TopicPartition("u", 1)}), version)
    answers: list[Any] = [response]
    if version >= 8:
        assert [group.error_code for group in response.groups] == [0, ErrorCode.NOT_COORDINATOR, 0]
        answers = [response.groups[0], response.groups[2]]
    for one in answers:
        assert [topic.topic_id if version >= 10 else topic.name for topic in one.topics] == (
            [TOPIC_ID, bytes(16)] if version >= 10 else ["t", "u"]
        )
        found = [[(item.committed_offset, item.error_code) for item in topic.partitions] for topic in one.topics]
        assert found == [[(0, 0), (1, 0), (2, 0)], [(0, 0), (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), (2, 0)]]


@pytest.mark.parametrize("version", [5, 7, 10])
def test_no_step_is_long(version: int) -> None:
    """10,000 offsets once took 20 ms in one turn, and more with their response."""
    offsets = {TopicPartition("t", index): CommittedOffset(index, 4, "m") for index in range(OFFSETS)}
    message = OffsetFetchRequest("g", topics=None)
    if version >= 8:
        message = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    longest: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            steps = handlers(AllOffsets(offsets, set())).fetch_in_steps(message, request_of(version))
            longest.append(0)
            is_over = False
            while not is_over:
                began = thread_time()
                is_over = next(steps, steps) is steps
                longest[-1] = max(longest[-1], 1000 * (thread_time() - began))
    finally:
        gc.enable()
    assert min(longest) < STEP_MS_MAX, longest
