import asyncio
import errno
from random import Random

import pytest
from controllers import create, new_controller, register, running
from simulated_disk import SimulatedDisk

from sskafka.metadata.decision import Decision
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.producer_ids import allocate_producer_ids
from sskafka.metadata.record_codec import decode_record, encode_record
from sskafka.metadata.records import BeginTransactionRecord, MetadataRecord, TopicRecord
from sskafka.model.errors import ErrorCode
from sskafka.model.settings import Settings
from sskafka.quorum.local import ControllerStoppedError, LocalController
from sskafka.quorum.metadata_log import MetadataError
from sskafka.quorum.snapshots import StoredRecord, stored_records
from sskafka.records.builder import NewRecord, build_batch
from sskafka.records.control import ControlType, read_control_type
from sskafka.storage.disk import read_file
from sskafka.storage.errors import LogDirectoryError, StorageError
from sskafka.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

DATA = "/data"
LOG_FILE = f"{DATA}/__cluster_metadata-0/00000000000000000000.log"


def stored(disk: SimulatedDisk) -> list[StoredRecord]:
    return list(stored_records(read_file(disk, LOG_FILE)))


def metadata_in(disk: SimulatedDisk) -> list[MetadataRecord]:
    return [decode_record(item.record.value or b"") for item in stored(disk) if not item.is_control]


def test_a_new_cluster_begins_with_its_features() -> None:
    async def scenario(disk: SimulatedDisk) -> None:
        async with running(disk, DATA) as controller:
            assert controller.image.metadata_version == 30
            assert controller.image.broker_default_configs() == {"min.insync.replicas": "1"}

    disk = SimulatedDisk()
    asyncio.run(scenario(disk))
    first, *others = stored(disk)
    assert read_control_type(first.record.key) == ControlType.LEADER_CHANGE
    assert len(others) == 7


def test_every_start_is_a_new_epoch_that_is_on_disk_before_it_is_used() -> None:
    async def scenario(disk: SimulatedDisk) -> int:
        async with running(disk, DATA) as controller:
            return controller.leader_epoch

    disk = SimulatedDisk()
    epochs = [asyncio.run(scenario(disk)) for _ in range(3)]
    assert epochs == [1, 2, 3]
    assert b'"leaderId":1,"leaderEpoch":3' in read_file(disk, f"{DATA}/__cluster_metadata-0/quorum-state")


def test_what_was_answered_is_there_after_a_power_cut() -> None:
    async def before(disk: SimulatedDisk) -> None:
        async with running(disk, DATA) as controller:
            await register(controller)
            response = await create(controller, "orders", 3)
            assert response.topics[0].error_code == 0
            disk.crash(Random(5))

    async def after(disk: SimulatedDisk) -> ClusterImage:
        async with running(disk, DATA) as controller:
            return controller.image

    disk = SimulatedDisk()
    asyncio.run(before(disk))
    image = asyncio.run(after(disk))
    assert len(image.topics_by_name["orders"].partitions) == 3


def test_decisions_that_wait_together_share_one_sync_and_see_each_other() -> None:
    async def scenario(disk: SimulatedDisk) -> tuple[list[int], int]:
        async with running(disk, DATA) as controller:
            await register(controller)
            syncs: list[str] = []
            disk.fault = lambda operation, path: syncs.append(path) if operation == "sync" else None
            responses = await asyncio.gather(*(create(controller, name) for name in ("a", "b", "a", "c")))
            return [response.topics[0].error_code for response in responses], len(syncs)

    codes, syncs = asyncio.run(scenario(SimulatedDisk()))
    assert codes == [0, 0, ErrorCode.TOPIC_ALREADY_EXISTS, 0]
    assert syncs == 1


def test_listeners_hear_of_a_change_after_it_is_durable_and_before_it_is_answered() -> None:
    async def scenario() -> list[str]:
        disk, story = SimulatedDisk(), []
        async with running(disk, DATA) as controller:
            await register(controller)

            def listen(delta: MetadataDelta, image: ClusterImage) -> None:
                assert controller.image is image
                story.append(f"told {len(delta.topics_created)}")

            controller.subscribe(listen)
            disk.fault = lambda operation, _: story.append("sync") if operation == "sync" else None
            await create(controller, "t")
            story.append("answered")
        return story

    assert asyncio.run(scenario()) == ["told 0", "sync", "told 1", "answered"]


def test_an_image_that_was_handed_out_does_not_change() -> None:
    async def scenario() -> tuple[ClusterImage, ClusterImage]:
        async with running(SimulatedDisk(), DATA) as controller:
            await register(controller)
            before = controller.image
            await create(controller, "t")
            return before, controller.image

    before, after = asyncio.run(scenario())
    assert (list(before.topics_by_name), list(after.topics_by_name)) == ([], ["t"])


def test_a_decision_that_raises_harms_nobody_else() -> None:
    def broken(image: ClusterImage) -> Decision[None]:
        raise LookupError("no")

    async def scenario() -> list[object]:
        async with running(SimulatedDisk(), DATA) as controller:
            await register(controller)
            return await asyncio.gather(controller.submit(broken), create(controller, "t"), return_exceptions=True)

    error, response = asyncio.run(scenario())
    assert isinstance(error, LookupError)
    assert not isinstance(response, BaseException)


def test_a_caller_that_gives_up_does_not_stop_the_round() -> None:
    async def scenario() -> ClusterImage:
        async with running(SimulatedDisk(), DATA) as controller:
            await register(controller)
            impatient = asyncio.create_task(create(controller, "a"))
            await asyncio.sleep(0)
            impatient.cancel()
            await create(controller, "b")
            return controller.image

    assert sorted(asyncio.run(scenario()).topics_by_name) == ["a", "b"]


def test_producer_ids_are_not_given_again_after_a_restart() -> None:
    async def scenario(disk: SimulatedDisk, incarnation: int) -> int:
        async with running(disk, DATA) as controller:
            epoch = (await register(controller, incarnation)).broker_epoch
            request = AllocateProducerIdsRequest(1, epoch)
            response = await controller.submit(lambda image: allocate_producer_ids(image, request))
            return response.producer_id_start

    disk = SimulatedDisk()
    assert [asyncio.run(scenario(disk, incarnation)) for incarnation in (1, 2, 3)] == [0, 1000, 2000]


def test_broker_epochs_are_offsets_of_the_log() -> None:
    async def scenario(disk: SimulatedDisk) -> int:
        async with running(disk, DATA) as controller:
            return (await register(controller)).broker_epoch

    disk = SimulatedDisk()
    epoch = asyncio.run(scenario(disk))
    (record,) = [item.record for item in stored(disk) if item.record.offset == epoch]
    assert type(decode_record(record.value or b"")).__name__ == "RegisterBrokerRecord"


def test_a_full_disk_refuses_the_change_and_the_controller_goes_on() -> None:
    async def scenario(disk: SimulatedDisk) -> list[str]:
        async with running(disk, DATA) as controller:
            await register(controller)
            disk.fault = full
            with pytest.raises(StorageError, match="no room"):
                await create(controller, "a")
            disk.fault = None
            await create(controller, "b")
            return list(controller.image.topics_by_name)

    def full(operation: str, path: str) -> None:
        if operation == "write":
            raise OSError(errno.ENOSPC, "No space left on device", path)

    disk = SimulatedDisk()
    assert asyncio.run(scenario(disk)) == ["b"]
    assert [item.name for item in metadata_in(disk) if isinstance(item, TopicRecord)] == ["b"]


def test_a_failed_sync_ends_the_controller_and_nothing_is_answered() -> None:
    def broken(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "Input/output error", path)

    async def scenario(disk: SimulatedDisk) -> None:
        controller = new_controller(disk, DATA)
        await controller.start()
        task = asyncio.create_task(controller.run())
        await register(controller)
        disk.fault = broken
        with pytest.raises(LogDirectoryError):
            await create(controller, "a")
        with pytest.raises(LogDirectoryError):
            await task
        with pytest.raises(LogDirectoryError):
            await create(controller, "b")
        assert not controller.image.topics_by_name

    asyncio.run(scenario(SimulatedDisk()))


def test_what_was_submitted_before_the_stop_is_still_done() -> None:
    async def scenario() -> int:
        controller = new_controller(SimulatedDisk(), DATA)
        await controller.start()
        task = asyncio.create_task(controller.run())
        await register(controller)
        last = asyncio.create_task(create(controller, "t"))
        await asyncio.sleep(0)
        controller.stop()
        await task
        with pytest.raises(ControllerStoppedError):
            await create(controller, "too-late")
        return (await last).topics[0].error_code

    assert asyncio.run(scenario()) == 0


def test_nobody_is_left_waiting_when_the_controller_is_cancelled() -> None:
    async def scenario() -> BaseException:
        disk = SimulatedDisk()
        controller = new_controller(disk, DATA)
        await controller.start()
        task = asyncio.create_task(controller.run())
        waiting = asyncio.create_task(register(controller))
        await asyncio.sleep(0)
        task.cancel()
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(outcome, BaseException)
        return outcome

    assert isinstance(asyncio.run(scenario()), ControllerStoppedError)


def test_a_transaction_that_was_left_open_is_aborted() -> None:
    async def leave_open(disk: SimulatedDisk) -> None:
        async with running(disk, DATA) as controller:
            records = [BeginTransactionRecord("half"), TopicRecord("ghost", bytes(range(16)))]
            values = [NewRecord(value=encode_record(record), timestamp=0) for record in records]
            log = controller._log
            log.append_as_leader(build_batch(values), controller.leader_epoch, 0, from_client=False)
            log.flush()

    async def restart(disk: SimulatedDisk) -> list[str]:
        async with running(disk, DATA) as controller:
            await register(controller)
            await create(controller, "t")
            return list(controller.image.topics_by_name)

    disk = SimulatedDisk()
    asyncio.run(leave_open(disk))
    assert asyncio.run(restart(disk)) == ["t"]
    assert asyncio.run(restart(disk)) == ["t"]


@pytest.mark.parametrize("voters", ["1@a:9093,2@b:9093"])
def test_a_quorum_of_several_voters_is_refused(voters: str) -> None:
    settings = Settings.resolve({"node.id": "1", "controller.quorum.voters": voters})

    async def scenario() -> None:
        await new_controller(SimulatedDisk(), DATA, settings).start()

    with pytest.raises(MetadataError, match="not supported yet"):
        asyncio.run(scenario())


def test_metadata_of_something_newer_is_refused() -> None:
    async def write(controller: LocalController) -> None:
        from sskafka.metadata.records import FeatureLevelRecord

        await controller.submit(lambda _: Decision([FeatureLevelRecord("metadata.version", 99)], None))

    async def scenario(disk: SimulatedDisk) -> None:
        async with running(disk, DATA) as controller:
            await write(controller)
        await new_controller(disk, DATA).start()

    with pytest.raises(MetadataError, match=r"metadata\.version 99; this software supports 7 to 30"):
        asyncio.run(scenario(SimulatedDisk()))
