import asyncio
import errno
import time
from random import Random
from typing import Any

import pytest
from controllers import Node, create, register, running, until
from simulated_disk import SimulatedDisk

from sskafka.controller.active_controller import NotControllerError
from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.record_codec import decode_record, encode_record
from sskafka.metadata.records import BeginTransactionRecord, FeatureLevelRecord, MetadataRecord, NoOpRecord, TopicRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.quorum.driver import QuorumDriver
from sskafka.quorum.metadata_opening import MetadataError
from sskafka.quorum.snapshots import StoredRecord, stored_records
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, read_control_type
from sskafka.storage.disk import read_file
from sskafka.storage.errors import LogDirectoryError, StorageError
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

DATA = "/data"
LOG_FILE = f"{DATA}/__cluster_metadata-0/00000000000000000000.log"


def stored(disk: SimulatedDisk) -> list[StoredRecord]:
    return list(stored_records(read_file(disk, LOG_FILE)))


def metadata_in(disk: SimulatedDisk) -> list[MetadataRecord]:
    return [decode_record(item.record.value or b"") for item in stored(disk) if not item.is_control]


def image_of(node: Node) -> ClusterImage:
    return node.plane.committed.image


def test_a_new_cluster_begins_with_its_features() -> None:
    async def scenario(disk: SimulatedDisk) -> None:
        async with running(disk, DATA) as node:
            await register(node)
            assert image_of(node).metadata_version == 30
            assert image_of(node).broker_default_configs() == {"min.insync.replicas": "1"}

    disk = SimulatedDisk()
    asyncio.run(scenario(disk))
    first, *others = stored(disk)
    assert read_control_type(first.record.key) == ControlType.LEADER_CHANGE
    assert [type(decode_record(item.record.value or b"")).__name__ for item in others[:5]] == [
        *["FeatureLevelRecord"] * 4,
        "ConfigRecord",
    ]


def test_every_start_is_a_new_epoch_that_is_on_disk_before_it_is_used() -> None:
    async def scenario(disk: SimulatedDisk) -> int:
        async with running(disk, DATA) as node:
            assert f'"leaderEpoch":{node.plane.leader_epoch}'.encode() in read_file(
                disk, f"{DATA}/__cluster_metadata-0/quorum-state"
            )
            return node.plane.leader_epoch

    disk = SimulatedDisk()
    assert [asyncio.run(scenario(disk)) for _ in range(3)] == [1, 2, 3]


def test_what_was_answered_is_there_after_a_power_cut() -> None:
    async def before(disk: SimulatedDisk) -> None:
        node = Node(disk, DATA)
        await node.start()
        await register(node)
        assert (await create(node, "orders", 3)).topics[0].error_code == 0
        disk.crash(Random(5))
        node.crash()

    async def after(disk: SimulatedDisk) -> ClusterImage:
        async with running(disk, DATA) as node:
            return image_of(node)

    disk = SimulatedDisk()
    asyncio.run(before(disk))
    image = asyncio.run(after(disk))
    assert len(image.topics_by_name["orders"].partitions) == 3


def test_decisions_that_wait_together_share_one_sync_and_see_each_other() -> None:
    async def scenario(disk: SimulatedDisk) -> tuple[list[int], int]:
        async with running(disk, DATA) as node:
            await register(node)
            syncs: list[str] = []
            disk.fault = lambda operation, path: syncs.append(path) if operation == "sync" else None
            responses = await asyncio.gather(*(create(node, name) for name in ("a", "b", "a", "c")))
            disk.fault = None
            return [response.topics[0].error_code for response in responses], len(syncs)

    codes, syncs = asyncio.run(scenario(SimulatedDisk()))
    assert codes == [0, 0, ErrorCode.TOPIC_ALREADY_EXISTS, 0]
    assert syncs == 1


def test_a_refusal_that_builds_on_an_uncommitted_change_waits_for_it() -> None:
    async def scenario(disk: SimulatedDisk) -> list[str]:
        story: list[str] = []

        async def told(name: str, work: Any) -> None:
            await work
            story.append(name)

        async with running(disk, DATA) as node:
            await register(node)
            first = asyncio.create_task(told("created", create(node, "a")))
            for _ in range(3):
                await asyncio.sleep(0)  # appended by now, and not committed
            assert "a" not in image_of(node).topics_by_name
            await asyncio.gather(first, told("refused", create(node, "a")))
        return story

    assert asyncio.run(scenario(SimulatedDisk())) == ["created", "refused"]


def test_listeners_hear_of_a_change_after_it_is_durable_and_before_it_is_answered() -> None:
    async def scenario() -> list[str]:
        disk, story = SimulatedDisk(), []
        async with running(disk, DATA) as node:
            await register(node)

            def listen(delta: MetadataDelta, image: ClusterImage) -> None:
                assert image_of(node) is image
                story.append(f"told {len(delta.topics_created)}")

            node.plane.committed.subscribe(listen)
            disk.fault = lambda operation, _: story.append("sync") if operation == "sync" else None
            await create(node, "t")
            disk.fault = None
            story.append("answered")
        return story

    assert asyncio.run(scenario()) == ["told 0", "sync", "told 1", "answered"]


def test_an_image_that_was_handed_out_does_not_change() -> None:
    async def scenario() -> tuple[ClusterImage, ClusterImage]:
        async with running(SimulatedDisk(), DATA) as node:
            await register(node)
            before = image_of(node)
            await create(node, "t")
            return before, image_of(node)

    before, after = asyncio.run(scenario())
    assert (list(before.topics_by_name), list(after.topics_by_name)) == ([], ["t"])


def test_a_decision_that_raises_harms_nobody_else() -> None:
    def broken(image: ClusterImage) -> ControllerResult[None]:
        raise LookupError("no")

    async def scenario() -> list[object]:
        async with running(SimulatedDisk(), DATA) as node:
            await register(node)
            return await asyncio.gather(node.plane.controller.submit(broken), create(node, "t"), return_exceptions=True)

    error, response = asyncio.run(scenario())
    assert isinstance(error, LookupError)
    assert not isinstance(response, BaseException)


def test_a_record_that_cannot_be_encoded_harms_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    def too_large(image: ClusterImage) -> ControllerResult[None]:
        return ControllerResult([TopicRecord("ghost", bytes(16)), FeatureLevelRecord("feature", 2**40)], None)

    async def scenario() -> tuple[list[object], ClusterImage]:
        async with running(SimulatedDisk(), DATA) as node:
            await register(node)
            submit = node.plane.controller.submit
            async with asyncio.timeout(10):
                waiting = (create(node, "a"), submit(too_large), create(node, "b"))
                outcomes = await asyncio.gather(*waiting, return_exceptions=True)
            return outcomes, image_of(node)

    (first, refused, last), image = asyncio.run(scenario())
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not isinstance(first, BaseException)
    assert not isinstance(last, BaseException)
    assert sorted(image.topics_by_name) == ["a", "b"]
    assert "the records of a decision cannot be encoded" in caplog.text


def test_a_caller_that_gives_up_does_not_stop_the_round() -> None:
    async def scenario() -> ClusterImage:
        async with running(SimulatedDisk(), DATA) as node:
            await register(node)
            impatient = asyncio.create_task(create(node, "a"))
            await asyncio.sleep(0)
            impatient.cancel()
            await create(node, "b")
            return image_of(node)

    assert sorted(asyncio.run(scenario()).topics_by_name) == ["a", "b"]


def test_producer_ids_are_not_given_again_after_a_restart() -> None:
    async def scenario(disk: SimulatedDisk, incarnation: int) -> int:
        async with running(disk, DATA) as node:
            epoch = (await register(node, incarnation)).broker_epoch
            response = await node.ask(AllocateProducerIdsRequest(1, epoch))
            start: int = response.producer_id_start
            return start

    disk = SimulatedDisk()
    assert [asyncio.run(scenario(disk, incarnation)) for incarnation in (1, 2, 3)] == [0, 1000, 2000]


def test_broker_epochs_are_offsets_of_the_log() -> None:
    async def scenario(disk: SimulatedDisk) -> int:
        async with running(disk, DATA) as node:
            return (await register(node)).broker_epoch

    disk = SimulatedDisk()
    epoch = asyncio.run(scenario(disk))
    (record,) = [item.record for item in stored(disk) if item.record.offset == epoch]
    assert type(decode_record(record.value or b"")).__name__ == "RegisterBrokerRecord"


def test_a_full_disk_refuses_the_change_and_the_controller_goes_on() -> None:
    async def scenario(disk: SimulatedDisk) -> list[str]:
        async with running(disk, DATA) as node:
            await register(node)
            disk.fault = full
            with pytest.raises(StorageError, match="no room"):
                await create(node, "a")
            disk.fault = None
            await create(node, "b")
            return list(image_of(node).topics_by_name)

    def full(operation: str, path: str) -> None:
        if operation == "write":
            raise OSError(errno.ENOSPC, "No space left on device", path)

    disk = SimulatedDisk()
    assert asyncio.run(scenario(disk)) == ["b"]
    assert [item.name for item in metadata_in(disk) if isinstance(item, TopicRecord)] == ["b"]


def test_a_new_cluster_waits_for_room_to_write_its_first_records() -> None:
    writes: list[str] = []

    def full(operation: str, path: str) -> None:
        """Room for the record that opens the epoch, and for no more, in the first two epochs."""
        if operation == "write" and path.endswith(".log"):
            writes.append(path)
            if len(writes) in {2, 4}:
                raise OSError(errno.ENOSPC, "No space left on device", path)

    async def scenario(disk: SimulatedDisk) -> tuple[int, int]:
        disk.fault = full
        async with running(disk, DATA, {"controller.quorum.election.timeout.ms": "20"}) as node:
            await register(node)
            return node.plane.leader_epoch, len(image_of(node).features)

    assert asyncio.run(scenario(SimulatedDisk())) == (3, 4)


def test_a_failed_sync_ends_the_node_and_nothing_is_answered() -> None:
    def broken(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "Input/output error", path)

    async def scenario(disk: SimulatedDisk) -> None:
        node = Node(disk, DATA)
        await node.start()
        await register(node)
        disk.fault = broken
        waiting = asyncio.create_task(create(node, "a"))
        assert isinstance(await node.failure, LogDirectoryError)
        assert not waiting.done()
        waiting.cancel()
        assert not image_of(node).topics_by_name
        node.crash()

    asyncio.run(scenario(SimulatedDisk()))


def test_nobody_is_left_waiting_when_the_node_stops() -> None:
    async def scenario() -> BaseException:
        node = Node(SimulatedDisk(), DATA)
        await node.start()
        request = CreateTopicsRequest([CreatableTopic("t", 1, 1)])
        waiting = asyncio.create_task(node.plane.decide(request))
        await asyncio.sleep(0)
        await node.stop()
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(outcome, BaseException)
        return outcome

    assert isinstance(asyncio.run(scenario()), NotControllerError)


def test_a_transaction_that_was_left_open_is_aborted() -> None:
    async def leave_open(disk: SimulatedDisk) -> None:
        node = Node(disk, DATA)
        await node.start()
        records = [BeginTransactionRecord("half"), TopicRecord("ghost", bytes(range(16)))]
        values = [NewRecord(value=encode_record(record), timestamp=0) for record in records]
        end_offset = node.plane._driver.propose(build_batch(values), 2, node.plane.leader_epoch)
        await until(lambda: node.plane.committed.next_offset >= end_offset)
        node.crash()

    async def restart(disk: SimulatedDisk, incarnation: int) -> list[str]:
        async with running(disk, DATA) as node:
            await register(node, incarnation)
            await create(node, "t")
            return list(image_of(node).topics_by_name)

    disk = SimulatedDisk()
    asyncio.run(leave_open(disk))
    assert asyncio.run(restart(disk, 1)) == ["t"]
    assert asyncio.run(restart(disk, 2)) == ["t"]


def test_metadata_of_something_newer_is_refused() -> None:
    async def scenario(disk: SimulatedDisk) -> None:
        node = Node(disk, DATA)
        await node.start()
        newer = ControllerResult([FeatureLevelRecord("metadata.version", 99)], None)
        writing = asyncio.create_task(node.plane.controller.submit(lambda _: newer))
        await node.failure
        writing.cancel()
        node.crash()
        async with running(disk, DATA):
            pass

    with pytest.raises(MetadataError, match=r"metadata\.version 99; this software supports 7 to 30"):
        asyncio.run(scenario(SimulatedDisk()))


@pytest.mark.parametrize("linger_ms", ["0", "50"])
def test_the_controller_gathers_changes_for_as_long_as_it_is_told(linger_ms: str) -> None:
    async def scenario() -> tuple[float, int]:
        settings = {"controller.quorum.append.linger.ms": linger_ms}
        async with running(SimulatedDisk(), DATA, settings) as node:
            await register(node)
            began, rounds = time.monotonic(), len(appended)
            await asyncio.gather(create(node, "a"), later(node, "b"))
            return time.monotonic() - began, len(appended) - rounds

    async def later(node: Node, name: str) -> None:
        await asyncio.sleep(0.01)
        await create(node, name)

    appended: list[int] = []
    propose = QuorumDriver.propose

    def counted(driver: QuorumDriver, batches: bytearray, count: int, epoch: int) -> int:
        appended.append(count)
        return propose(driver, batches, count, epoch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuorumDriver, "propose", counted)
        seconds, rounds = asyncio.run(scenario())
    assert rounds == (1 if linger_ms == "50" else 2)
    assert seconds >= int(linger_ms) / 1000


def test_an_idle_controller_writes_empty_records_where_that_is_set() -> None:
    async def scenario(disk: SimulatedDisk) -> None:
        async with running(disk, DATA, {"metadata.max.idle.interval.ms": "10"}) as node:
            await register(node)
            before = image_of(node).next_offset
            await until(lambda: image_of(node).next_offset >= before + 3)

    disk = SimulatedDisk()
    asyncio.run(scenario(disk))
    assert sum(isinstance(record, NoOpRecord) for record in metadata_in(disk)) >= 3
