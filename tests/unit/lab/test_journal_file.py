import asyncio
import errno
import json

from controllers import Node, create, register, running, until
from quorums import Quorum, register_broker
from simulated_disk import SimulatedDisk
from virtual_loop import run_virtually

from sskafka.lab.journal import parse_line
from sskafka.storage.disk import read_file
from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

APART = {"metadata.log.dir": "/metadata"}
JOURNAL = "/metadata/__cluster_metadata.log"


def lines(disk: SimulatedDisk) -> list[str]:
    return read_file(disk, JOURNAL).decode().splitlines(keepends=True)


def told(disk: SimulatedDisk) -> list[tuple[int, str, str]]:
    entries = [parse_line(line) for line in lines(disk)]
    return [(entry.offset, entry.type, entry.payload["topic_name"]) for entry in entries]


async def delete(node: Node, name: str) -> None:
    response = await node.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name)]))
    assert response.responses[0].error_code == 0


async def come_and_go(disk: SimulatedDisk, incarnation: int, *names: str, **settings: str) -> None:
    """Each topic is created; the first is deleted and created again."""
    async with running(disk, "/data", {**APART, **settings}) as node:
        await register(node, incarnation)
        for name in names:
            await create(node, name, 2)
        for name in names[:1]:
            await delete(node, name)
            await create(node, name, 3)


def test_each_topic_that_comes_or_goes_is_a_line() -> None:
    disk = SimulatedDisk()
    asyncio.run(come_and_go(disk, 1, "a", "b"))
    assert told(disk) == [
        (0, "create-topic", "a"),
        (1, "create-topic", "b"),
        (2, "delete-topic", "a"),
        (3, "create-topic", "a"),
    ]
    first = lines(disk)[0].split(" ", 3)
    assert first[:3] == ["0", "1", "create-topic"]
    assert json.loads(first[3])["partitions"] == [
        {"id": "a-1", "replica_brokers": ["1"]},
        {"id": "a-2", "replica_brokers": ["1"]},
    ]


def test_it_goes_on_after_restarts_and_is_never_said_twice() -> None:
    disk = SimulatedDisk()
    for start, name in enumerate(("a", "b", "c"), 1):
        asyncio.run(come_and_go(disk, start, name))
    entries = told(disk)
    assert [offset for offset, _, _ in entries] == list(range(9))
    assert [name for _, _, name in entries] == ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    assert [parse_line(line).epoch for line in lines(disk)] == [1] * 3 + [2] * 3 + [3] * 3


def test_a_lost_or_damaged_journal_is_made_anew_as_it_was() -> None:
    disk = SimulatedDisk()
    asyncio.run(come_and_go(disk, 1, "a", "b"))
    whole = lines(disk)

    def lost() -> None:
        disk.remove(JOURNAL)

    def shortened() -> None:
        disk.open(JOURNAL).truncate(40)

    def without_position() -> None:
        disk.remove("/metadata/.journal-position")

    def strange_position() -> None:
        disk.open("/metadata/.journal-position").write_at(b"?????", 0)

    def more_than_the_position_knows() -> None:
        disk.open(JOURNAL).write_at(b"4 1 create-topic {", len("".join(whole)))

    damages = (lost, shortened, without_position, strange_position, more_than_the_position_knows)
    for start, damage in enumerate(damages, 2):
        damage()
        asyncio.run(come_and_go(disk, start))
        assert lines(disk) == whole, damage.__name__


def test_it_begins_with_the_snapshot_where_the_log_has_lost_its_beginning() -> None:
    disk = SimulatedDisk()
    small = {"metadata.log.max.record.bytes.between.snapshots": "1", "metadata.max.retention.bytes": "0"}

    async def snapshots_and_journal() -> None:
        async with running(disk, "/data", {**APART, **small}) as node:
            await register(node)
            for number in range(5):
                await create(node, f"t{number}")
                await delete(node, "t0") if number == 1 else None
            await until(lambda: node.plane._log.start_offset > 0)

    asyncio.run(snapshots_and_journal())
    assert len(told(disk)) == 6
    asyncio.run(come_and_go(disk, 2, "last"))
    assert len(told(disk)) == 9, "a journal that is there goes on"
    disk.remove(JOURNAL)
    asyncio.run(come_and_go(disk, 3))
    assert told(disk)[:4] == [(number, "create-topic", f"t{number + 1}") for number in range(4)]


def test_all_nodes_number_the_lines_alike() -> None:
    async def scenario(quorum: Quorum) -> None:
        quorum.start()
        controller = await quorum.controller()
        await register_broker(controller)
        late = next(node_id for node_id in quorum.node_ids if node_id != controller.node_id)
        quorum.crash(late)
        wanted = [CreatableTopic(name, 1, 1) for name in ("b", "a", "c")]
        await controller.decide(CreateTopicsRequest(wanted))
        await controller.decide(DeleteTopicsRequest(topics=[DeleteTopicState("a")]))
        await controller.decide(CreateTopicsRequest([CreatableTopic("a", 2, 1)]))
        quorum.start(late)
        expected = lines(quorum.disks[controller.node_id])
        assert len(expected) == 5
        await quorum.until(
            lambda: all(lines(disk) == expected for disk in quorum.disks.values()), "all have the same lines"
        )
        await quorum.stop()

    run_virtually(scenario(Quorum(settings=APART)))


def test_a_full_disk_stops_the_journal_and_not_the_node() -> None:
    disk = SimulatedDisk()

    def full(operation: str, path: str) -> None:
        if operation == "write" and path == JOURNAL:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    async def scenario() -> None:
        async with running(disk, "/data", APART) as node:
            await register(node)
            disk.fault = full
            await create(node, "a")
            await create(node, "b")
            disk.fault = None

    asyncio.run(scenario())
    assert lines(disk) == []
    asyncio.run(come_and_go(disk, 2))
    assert told(disk) == [(0, "create-topic", "a"), (1, "create-topic", "b")]


def test_there_is_none_where_the_metadata_lies_among_the_data() -> None:
    disk = SimulatedDisk()

    async def scenario() -> None:
        async with running(disk, "/data", {}) as node:
            await register(node)
            await create(node, "a")

    asyncio.run(scenario())
    assert {entry.name for entry in disk.entries("/data")} == {"__cluster_metadata-0"}


def test_the_mirror_of_the_quorum_state_names_the_last_leader() -> None:
    disk = SimulatedDisk()
    asyncio.run(come_and_go(disk, 1))
    assert json.loads(read_file(disk, "/metadata/quorum-state")) == {"leader_id": 1, "leader_epoch": 1, "voted_id": 1}

    async def never_started() -> None:
        node = Node(disk, "/data", {**APART, "metadata.log.dir": "/fresh", "controller.quorum.voters": "1@a:1,2@b:2"})
        node.plane.start()
        await node.stop()

    asyncio.run(never_started())
    assert json.loads(read_file(disk, "/fresh/quorum-state")) == {"leader_id": -1, "leader_epoch": 0, "voted_id": -1}
