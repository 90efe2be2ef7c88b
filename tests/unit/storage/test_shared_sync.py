from background_steps import Steps
from simulated_disk import SimulatedDisk

from sskafka.model.ids import TopicPartition
from sskafka.storage.broker_directory import SharedSync, Ticket
from sskafka.storage.log_config import LogConfig
from sskafka.storage.log_manager import LogManager
from sskafka.storage.meta_properties import MetaProperties


class Syncs:
    """How often the directory was synced; `meanwhile` happens in the middle of the next sync."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.disk.make_directory("/a")
        self.disk.fault = self._count
        self.count = 0
        self.shared = SharedSync(self.disk, "/a")
        self.late: list[Ticket] = []
        self.is_somebody_late = False

    def _count(self, operation: str, path: str) -> None:
        if (operation, path) == ("sync_directory", "/a"):
            self.count += 1
            if self.is_somebody_late:
                self.is_somebody_late = False
                self.late.append(self.shared.ticket())


def test_one_sync_serves_all_who_came_before_it() -> None:
    syncs = Syncs()
    tickets = [syncs.shared.ticket() for _ in range(10)]
    for ticket in reversed(tickets):
        ticket.sync()
    assert syncs.count == 1


def test_who_comes_while_it_runs_gets_another() -> None:
    syncs = Syncs()
    ticket = syncs.shared.ticket()
    syncs.is_somebody_late = True
    ticket.sync()
    syncs.late[0].sync()
    assert syncs.count == 2


def test_logs_that_are_made_together_are_named_by_one_sync() -> None:
    syncs, steps = Syncs(), Steps()
    manager = LogManager.open(
        syncs.disk, ("/a",), node_id=1, format_as=lambda: MetaProperties("cluster", 1), background=steps
    )
    syncs.count = 0
    for number in range(50):
        manager.open_log(TopicPartition("orders", number), bytes(range(16)), LogConfig(), 0)
    steps.finish()
    assert syncs.count <= 2, "one for the first, one for those who came while it was asked for"
