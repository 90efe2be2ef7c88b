"""Quorums of several nodes: every node learns what one of them has committed, even if that node fails."""

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest
from quorums import Quorum, register_broker
from virtual_loop import run_virtually

from sskafka.controller.active_controller import NotControllerError
from sskafka.controller.control_plane import ControlPlane
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

DESCRIBE = DescribeQuorumRequest(topics=[RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])


def run(quorum: Quorum, scenario: Callable[[Quorum], Awaitable[None]]) -> None:
    async def whole() -> None:
        quorum.start()
        try:
            await scenario(quorum)
            assert not quorum.failures
        finally:
            await quorum.stop()

    run_virtually(whole())


async def create(controller: ControlPlane, name: str) -> int:
    response = await controller.decide(CreateTopicsRequest([CreatableTopic(name, 1, 1)]))
    code: int = response.topics[0].error_code
    return code


def full(operation: str, path: str) -> None:
    """A disk with room for small files, not for the log."""
    if operation == "write" and path.endswith(".log"):
        raise OSError(errno.ENOSPC, "No space left on device", path)


def knows(plane: ControlPlane, *names: str) -> bool:
    return set(names) <= set(plane.committed.image.topics_by_name)


def test_one_leads_and_all_learn_what_it_decides() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        await register_broker(controller)
        assert await create(controller, "t") == 0
        await quorum.until(lambda: all(knows(plane, "t") for plane in quorum.planes.values()), "all know it")
        assert len({plane.leader_id for plane in quorum.planes.values()}) == 1

    run(Quorum(3, observers=1), scenario)


def test_only_the_active_controller_decides() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        for plane in quorum.planes.values():
            if plane is not controller:
                with pytest.raises(NotControllerError):
                    await create(plane, "t")

    run(Quorum(), scenario)


def test_what_was_answered_outlives_the_crash_of_the_one_that_answered() -> None:
    async def scenario(quorum: Quorum) -> None:
        for number in range(3):
            controller = await quorum.controller()
            await register_broker(controller, incarnation=number + 1)
            assert await create(controller, f"t{number}") == 0
            quorum.crash(controller.node_id)
            quorum.start(controller.node_id)
            survivor = await quorum.controller()
            assert survivor.leader_epoch > controller.leader_epoch
            assert knows(survivor, *(f"t{earlier}" for earlier in range(number + 1)))

    run(Quorum(), scenario)


def test_a_leader_without_its_majority_commits_nothing_and_those_who_wait_are_sent_away() -> None:
    async def scenario(quorum: Quorum) -> None:
        old = await quorum.controller()
        await register_broker(old)
        quorum.cut_off = {old.node_id}
        waiting = asyncio.create_task(create(old, "lost"))
        others = [node_id for node_id in quorum.node_ids if node_id != old.node_id]
        new = await quorum.controller(*others)
        assert await create(new, "kept") == 0
        with pytest.raises(KafkaError) as refused:
            await waiting
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert not knows(old, "lost")
        quorum.cut_off = set()
        await quorum.until(lambda: knows(old, "kept"), "the old leader has learnt what the new one decided")
        assert not knows(old, "lost")
        assert not old.controller.is_active

    run(Quorum(), scenario)


def test_a_restart_of_all_forgets_nothing() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        await register_broker(controller)
        assert await create(controller, "t") == 0
        for node_id in list(quorum.planes):
            quorum.crash(node_id)
        quorum.start()
        again = await quorum.controller()
        assert knows(again, "t")
        await register_broker(again, incarnation=2)
        await quorum.until(lambda: all(knows(plane, "t") for plane in quorum.planes.values()), "all know it again")

    run(Quorum(), scenario)


def test_a_leaving_leader_hands_over_at_once() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        began = asyncio.get_running_loop().time()
        await quorum.planes.pop(controller.node_id).stop()
        await quorum.controller()
        assert asyncio.get_running_loop().time() - began < 5, "nobody waited for the fetch timeout"

    run(Quorum(settings={"controller.quorum.fetch.timeout.ms": "20000"}), scenario)


def test_snapshots_replace_the_beginning_of_the_log_and_reach_who_needs_them() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        await register_broker(controller)
        late = next(node_id for node_id in quorum.node_ids if node_id != controller.node_id)
        quorum.crash(late)
        for number in range(30):
            assert await create(controller, f"t{number}") == 0
        await quorum.until(lambda: controller._log.start_offset > 20, "the leader's log has lost its beginning")
        assert len(controller._log.snapshots) == 1
        quorum.start(late)
        follower = quorum.planes[late]
        await quorum.until(lambda: knows(follower, "t0", "t29"), "the late one has all topics")
        assert follower._log.start_offset > 20
        assert await create(controller, "after") == 0
        await quorum.until(lambda: knows(follower, "after"), "it goes on with the log")
        for node_id in list(quorum.planes):
            quorum.crash(node_id)
        quorum.start()
        again = await quorum.controller()
        assert knows(again, "t0", "t29", "after")
        assert again.committed.image.features == controller.committed.image.features

    settings = {"metadata.log.max.record.bytes.between.snapshots": "1000", "metadata.max.retention.bytes": "0"}
    run(Quorum(settings=settings), scenario)


def test_the_leader_describes_the_quorum() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        await register_broker(controller)
        await quorum.until(lambda: len(controller._driver.node.progress.observers) == 1, "the observer was heard of")
        (topic,) = (await controller.decide(DESCRIBE)).topics
        (partition,) = topic.partitions
        assert (partition.error_code, partition.leader_id) == (0, controller.node_id)
        assert [voter.replica_id for voter in partition.current_voters] == [1, 2, 3]
        assert [observer.replica_id for observer in partition.observers] == [4]
        assert partition.high_watermark > 0

    run(Quorum(3, observers=1), scenario)


def test_a_silent_broker_is_fenced() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        await register_broker(controller, 1)
        await quorum.until(lambda: controller.committed.image.brokers[1].fenced, "it is fenced")

    run(Quorum(settings={"broker.session.timeout.ms": "300"}), scenario)


def test_a_follower_whose_disk_is_full_waits_for_room() -> None:
    async def scenario(quorum: Quorum) -> None:
        controller = await quorum.controller()
        await register_broker(controller)
        poor = next(node_id for node_id in quorum.node_ids if node_id != controller.node_id)
        quorum.disks[poor].fault = full
        assert await create(controller, "t") == 0, "the others are a majority"
        await asyncio.sleep(1)
        assert not knows(quorum.planes[poor], "t")
        assert controller.controller.is_active
        quorum.disks[poor].fault = None
        await quorum.until(lambda: knows(quorum.planes[poor], "t"), "it has caught up")

    run(Quorum(), scenario)


def test_a_node_whose_disk_is_full_does_not_lead() -> None:
    async def scenario(quorum: Quorum) -> None:
        for _ in range(2):
            controller = await quorum.controller()
            poor = next(node_id for node_id in quorum.planes if node_id != controller.node_id)
            quorum.disks[poor].fault = full
            quorum.crash(controller.node_id)
            assert (await quorum.controller()).node_id != poor
            quorum.disks[poor].fault = None
            quorum.start(controller.node_id)

    run(Quorum(5), scenario)
