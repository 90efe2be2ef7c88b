import pytest
from metadata_clusters import SETTINGS, decided
from partition_changes import fence, partition, replicated, restart

from sskafka.metadata.brokers.heartbeats import broker_heartbeat
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.brokers.sessions import BrokerSessions
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.image_records import broker_record
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class Controller:
    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.now_ms = 1000
        self.sessions = BrokerSessions(timeout_ms=6000)
        self.sessions.take_over(image, self.now_ms)

    def beat(
        self, broker_id: int, offset: int | None = None, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> BrokerHeartbeatResponse:
        at = self.image.next_offset - 1 if offset is None else offset
        request = BrokerHeartbeatRequest(broker_id, self.image.brokers[broker_id].epoch, at, want_fence, want_shut_down)
        return decided(self.image, broker_heartbeat(self.image, request, self.sessions, SETTINGS, self.now_ms))


@pytest.fixture
def controller() -> Controller:
    return Controller(replicated())


def test_a_registered_broker_is_unfenced_when_it_has_replayed_its_registration(controller: Controller) -> None:
    epoch = restart(controller.image, 2)
    behind = controller.beat(2, offset=epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    wants_to_wait = controller.beat(2, offset=epoch, want_fence=True)
    assert (wants_to_wait.is_caught_up, wants_to_wait.is_fenced) == (True, True)
    there = controller.beat(2, offset=epoch)
    assert (there.is_caught_up, there.is_fenced, there.should_shut_down) == (True, False, False)
    assert controller.image.is_active(2)


def test_a_heartbeat_with_an_old_epoch_is_rejected(controller: Controller) -> None:
    for broker_id, epoch in ((1, 999), (42, 0)):
        request = BrokerHeartbeatRequest(broker_id, epoch, 0)
        decision = broker_heartbeat(controller.image, request, controller.sessions, SETTINGS, 1000)
        assert decision.response.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_may_stop_when_all_brokers_know_the_new_leaders(controller: Controller) -> None:
    for broker_id in (1, 2, 3):
        controller.beat(broker_id)
    begun = controller.beat(1, want_shut_down=True)
    assert (begun.is_fenced, begun.should_shut_down) == (False, False)
    moved_at = controller.image.next_offset - 1
    assert (partition(controller.image).leader, partition(controller.image).isr) == (2, (2, 3))
    assert not controller.beat(1, want_shut_down=True).should_shut_down
    controller.beat(2, offset=moved_at)
    controller.beat(3, offset=moved_at - 1)
    assert not controller.beat(1, want_shut_down=True).should_shut_down
    controller.beat(3, offset=moved_at)
    done = controller.beat(1, want_shut_down=True)
    assert (done.is_fenced, done.should_shut_down) == (True, True)
    assert controller.image.brokers[1].fenced
    assert not controller.sessions.may_be_alive(1, controller.now_ms)
    again = controller.beat(1, want_shut_down=True)
    assert again.should_shut_down


def test_a_broker_without_leaderships_may_stop_at_once(controller: Controller) -> None:
    assert controller.beat(3, want_shut_down=True).should_shut_down
    assert partition(controller.image).isr == (1, 2)


def test_want_fence_and_want_shut_down_fence_at_once(controller: Controller) -> None:
    assert controller.beat(1, want_shut_down=True, want_fence=True).should_shut_down
    assert partition(controller.image).leader == 2
    assert controller.beat(2, want_fence=True).is_fenced
    assert partition(controller.image).leader == 3


def test_a_new_controller_completes_a_controlled_shutdown(controller: Controller) -> None:
    controller.beat(1, want_shut_down=True)
    successor = Controller(controller.image)
    assert not successor.beat(1, want_shut_down=True).should_shut_down
    successor.beat(2)
    successor.beat(3)
    assert successor.beat(1, want_shut_down=True).should_shut_down


def test_the_only_broker_may_stop() -> None:
    controller = Controller(replicated(1))
    assert not controller.beat(1, want_shut_down=True).should_shut_down
    assert controller.beat(1, want_shut_down=True).should_shut_down
    state = partition(controller.image)
    assert (state.leader, state.eligible_leader_replicas) == (-1, (1,))


def test_a_fenced_broker_completes_its_shutdown(controller: Controller) -> None:
    controller.beat(1, want_shut_down=True)
    fence(controller.image, 1)
    assert controller.beat(1, want_shut_down=True).should_shut_down


def test_a_controlled_shutdown_is_irreversible(controller: Controller) -> None:
    controller.beat(1, want_shut_down=True)
    fence(controller.image, 1)
    assert controller.beat(1).is_fenced
    restart(controller.image, 1)
    assert not controller.beat(1).is_fenced


def test_cordoned_directories_are_recorded_once_and_survive_a_snapshot(controller: Controller) -> None:
    image = controller.image
    broker = image.brokers[1]

    def beat(cordoned: list[bytes] | None) -> int:
        request = BrokerHeartbeatRequest(1, broker.epoch, image.next_offset - 1, cordoned_log_dirs=cordoned)
        decision = broker_heartbeat(image, request, controller.sessions, SETTINGS, controller.now_ms)
        decided(image, decision)
        return len(decision.records)

    first = [broker.directories[0]]
    assert (beat(None), beat([]), beat(first), beat(first), beat(None)) == (0, 0, 1, 0, 0)
    assert list(image.brokers[1].cordoned) == first
    again = BrokerRegistration.from_record(broker_record(image.brokers[1]))
    assert again.cordoned == image.brokers[1].cordoned
    assert beat([]) == 1
    assert image.brokers[1].cordoned == ()
