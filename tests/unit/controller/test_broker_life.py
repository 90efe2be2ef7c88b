"""The life cycle of a broker against a controller whose responses the test sets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from virtual_loop import LoopClock, run_virtually

from sskafka.controller.broker_lifecycle import BrokerLifecycle, BrokerReplacedError
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.settings import Settings
from sskafka.storage.errors import LogDirectoryError
from sskafka.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from sskafka.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

EPOCH = 41
FIRST, SECOND = bytes([1] * 16), bytes([2] * 16)
FAST = {"broker.session.timeout.ms": "200", "broker.heartbeat.interval.ms": "20"}
FAST_BEAT_S = 0.02


class ScriptedController:
    """Answers registrations as the test sets; the broker is unfenced once it has replayed its registration."""

    def __init__(self, *registrations: ErrorCode) -> None:
        self.registrations = list(registrations)
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.error = ErrorCode.NONE
        self.leaves_after = 1

    async def ask(self, request: Any, timeout_ms: int) -> Any:
        await asyncio.sleep(0)
        if isinstance(request, BrokerRegistrationRequest):
            code = self.registrations.pop(0) if self.registrations else ErrorCode.NONE
            return BrokerRegistrationResponse(error_code=code, broker_epoch=EPOCH)
        assert isinstance(request, BrokerHeartbeatRequest)
        self.heartbeats.append(request)
        if self.error is ErrorCode.REQUEST_TIMED_OUT:
            raise KafkaError(self.error)
        caught_up = request.current_metadata_offset >= EPOCH
        leaving = [beat for beat in self.heartbeats if beat.want_shut_down]
        return BrokerHeartbeatResponse(
            error_code=self.error,
            is_caught_up=caught_up,
            is_fenced=not caught_up,
            should_shut_down=len(leaving) >= self.leaves_after,
        )


class LastFetch:
    beats = True

    async def is_turning(self) -> bool:
        return self.beats


class Broker:
    def __init__(self, controller: ScriptedController) -> None:
        self.last_fetch = LastFetch()
        self.failures: list[BaseException] = []
        self.offline: list[bytes] = []
        self.cordoned: list[bytes] = []
        self.life = BrokerLifecycle(
            controller,  # type: ignore[arg-type]
            BrokerRegistrationRequest(7, "cluster", log_dirs=[FIRST, SECOND]),
            Settings.resolve({"node.id": "7", **FAST}),
            LoopClock(),
            self.last_fetch,  # type: ignore[arg-type]
            lambda: self.offline,
            self.failures.append,
            lambda: self.cordoned,
        )


def run(controller: ScriptedController, scenario: Callable[[Broker], Awaitable[None]]) -> Broker:
    async def whole() -> Broker:
        broker = Broker(controller)
        await scenario(broker)
        await broker.life.shut_down(move_leadership=False)
        return broker

    return run_virtually(whole())


async def started(broker: Broker) -> None:
    starting = asyncio.create_task(broker.life.start())
    await asyncio.sleep(0.01)
    broker.life.applied(EPOCH + 1)
    await starting


def test_it_is_unfenced_once_it_has_replayed_its_registration() -> None:
    async def scenario(broker: Broker) -> None:
        starting = asyncio.create_task(broker.life.start())
        broker.life.applied(EPOCH)
        await asyncio.sleep(0.05)
        assert not starting.done(), "the registration itself is not replayed yet"
        broker.life.applied(EPOCH + 1)
        await starting
        assert broker.life.broker_epoch == EPOCH

    run(ScriptedController(), scenario)


def test_it_waits_for_the_session_of_its_dead_predecessor() -> None:
    controller = ScriptedController(*[ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 2)
    run(controller, started)
    assert not controller.registrations


def test_it_gives_up_when_its_id_is_that_of_a_living_broker() -> None:
    controller = ScriptedController(*[ErrorCode.DUPLICATE_BROKER_REGISTRATION] * 1000)
    with pytest.raises(KafkaError, match="another broker with the id 7 is registered, and it is alive"):
        run(controller, lambda broker: broker.life.start())


@pytest.mark.parametrize("code", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION])
def test_other_refusals_end_the_start_at_once(code: ErrorCode) -> None:
    with pytest.raises(KafkaError, match="broker 7 was rejected") as refused:
        run(ScriptedController(code), lambda broker: broker.life.start())
    assert refused.value.code is code


def test_no_heartbeat_while_the_data_loop_is_stuck() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        broker.last_fetch.beats = False
        await asyncio.sleep(0.03)
        before = len(controller.heartbeats)
        await asyncio.sleep(0.1)
        assert len(controller.heartbeats) == before
        broker.last_fetch.beats = True
        await asyncio.sleep(0.1)
        assert len(controller.heartbeats) > before

    controller = ScriptedController()
    run(controller, scenario)


def test_a_controller_that_does_not_answer_is_asked_again() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        controller.error = ErrorCode.REQUEST_TIMED_OUT
        await asyncio.sleep(0.05)
        controller.error = ErrorCode.NONE
        before = len(controller.heartbeats)
        await asyncio.sleep(0.05)
        assert len(controller.heartbeats) > before

    controller = ScriptedController()
    assert run(controller, scenario).failures == []


def test_a_broker_whose_place_was_taken_ends() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        controller.error = ErrorCode.STALE_BROKER_EPOCH
        await asyncio.sleep(0.1)

    controller = ScriptedController()
    (failure,) = run(controller, scenario).failures
    assert isinstance(failure, BrokerReplacedError)


def test_it_leaves_when_the_controller_lets_it() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        await broker.life.shut_down(move_leadership=True)

    controller = ScriptedController()
    controller.leaves_after = 3
    run(controller, scenario)
    assert sum(beat.want_shut_down for beat in controller.heartbeats) == 3


def test_it_leaves_without_a_controller_too() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        controller.error = ErrorCode.REQUEST_TIMED_OUT
        await broker.life.shut_down(move_leadership=True)

    controller = ScriptedController()
    run(controller, scenario)


def test_it_tells_of_failed_directories_and_ends_when_none_is_left() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        broker.offline = [FIRST]
        await asyncio.sleep(0.05)
        assert controller.heartbeats[-1].offline_log_dirs == [FIRST]
        assert broker.failures == []
        broker.offline = [FIRST, SECOND]
        await asyncio.sleep(0.05)

    controller = ScriptedController()
    (failure,) = run(controller, scenario).failures
    assert isinstance(failure, LogDirectoryError)


def test_it_tells_of_cordoned_directories_without_waiting_for_the_next_heartbeat() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        for cordoned in ([FIRST, SECOND], []):
            broker.cordoned = cordoned
            broker.life.applied(EPOCH + 2)
            await asyncio.sleep(FAST_BEAT_S / 10)
            assert controller.heartbeats[-1].cordoned_log_dirs == cordoned
            beats = len(controller.heartbeats)
            broker.life.applied(EPOCH + 3)
            await asyncio.sleep(FAST_BEAT_S / 10)
            assert len(controller.heartbeats) == beats, "nothing has changed since"

    controller = ScriptedController()
    run(controller, scenario)


def test_it_stops_when_the_controller_is_not_told_of_a_failed_directory_in_time() -> None:
    controller = ScriptedController()

    async def scenario(broker: Broker) -> None:
        await started(broker)
        controller.error = ErrorCode.REQUEST_TIMED_OUT
        broker.offline = [FIRST]
        await asyncio.sleep(29)
        assert broker.failures == []
        await asyncio.sleep(5)

    (failure,) = run(controller, scenario).failures
    assert "log.dir.failure.timeout.ms" in str(failure)


def test_it_goes_on_without_a_directory_that_the_controller_knows_to_have_failed() -> None:
    async def scenario(broker: Broker) -> None:
        await started(broker)
        broker.offline = [FIRST]
        await asyncio.sleep(100)

    assert run(ScriptedController(), scenario).failures == []
