import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from virtual_loop import LoopClock, run_virtually

from sskafka.controller.broker_watch import PAUSE_MAX_MS, BrokerWatch, ProbeOutcome
from sskafka.metadata.brokers.presence import BrokerPresence, ProbeResult
from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import RegisterBrokerRecord, UnregisterBrokerRecord


class Held:
    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.is_dropped = False

    async def lost(self) -> None:
        await self.ended.wait()

    def drop(self) -> None:
        self.is_dropped = True


class Prober:
    """Finds what the test says, and notes when and of whom it was asked."""

    def __init__(self) -> None:
        self.found: Callable[[], ProbeOutcome] = lambda: ProbeOutcome(ProbeResult.UNSURE)
        self.asked: list[tuple[int, int, float]] = []

    async def probe(self, broker: BrokerRegistration, *, was_reached: bool) -> ProbeOutcome:
        self.asked.append((broker.id, broker.epoch, asyncio.get_running_loop().time()))
        await asyncio.sleep(0.001)
        return self.found()


class Lab:
    def __init__(self) -> None:
        self.prober, self.presence, self.image = Prober(), BrokerPresence(), ClusterImage()
        self.sightings = 0
        self.watch = BrokerWatch(2, self.prober, self.presence, LoopClock(), self._seen)

    def _seen(self) -> None:
        self.sightings += 1

    def register(self, broker_id: int, epoch: int) -> None:
        self._apply(RegisterBrokerRecord(broker_id=broker_id, incarnation_id=bytes(16), broker_epoch=epoch))

    def unregister(self, broker_id: int, epoch: int) -> None:
        self._apply(UnregisterBrokerRecord(broker_id, epoch))

    def _apply(self, record: RegisterBrokerRecord | UnregisterBrokerRecord) -> None:
        delta = MetadataDelta()
        self.image.replay(record, delta)
        self.watch.metadata_changed(delta, self.image)


def virtually(scenario: Callable[[Lab], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        lab = Lab()
        await scenario(lab)
        lab.watch.stop()

    run_virtually(run())


def test_a_broker_whose_connection_breaks_is_asked_for_again_at_once() -> None:
    async def scenario(lab: Lab) -> None:
        held = Held()
        lab.prober.found = lambda: ProbeOutcome(ProbeResult.ANSWERED, held)
        lab.register(1, 5)
        await asyncio.sleep(60)
        assert len(lab.prober.asked) == 1
        lab.prober.found = lambda: ProbeOutcome(ProbeResult.REFUSED)
        held.ended.set()
        await asyncio.sleep(0.002)
        assert len(lab.prober.asked) == 2
        assert held.is_dropped
        assert lab.presence.is_gone(1, 5, 61_000)
        assert lab.sightings == 2

    virtually(scenario)


def test_pauses_grow_while_a_broker_is_away() -> None:
    async def scenario(lab: Lab) -> None:
        lab.register(1, 5)
        await asyncio.sleep(60)
        times = [at for _, _, at in lab.prober.asked]
        assert times[1] < 0.1
        assert len(times) < 25
        assert times[-1] - times[-2] <= PAUSE_MAX_MS / 1000 + 0.01

    virtually(scenario)


def test_a_broker_that_hangs_up_on_everybody_is_not_kept_busy() -> None:
    async def scenario(lab: Lab) -> None:
        def found() -> ProbeOutcome:
            held = Held()
            held.ended.set()
            return ProbeOutcome(ProbeResult.ANSWERED, held)

        lab.prober.found = found
        lab.register(1, 5)
        await asyncio.sleep(60)
        assert len(lab.prober.asked) < 25

    virtually(scenario)


def test_each_registration_is_watched_and_none_after_it() -> None:
    async def scenario(lab: Lab) -> None:
        first = Held()
        lab.prober.found = lambda: ProbeOutcome(ProbeResult.ANSWERED, first)
        lab.register(1, 5)
        await asyncio.sleep(1)
        lab.prober.found = lambda: ProbeOutcome(ProbeResult.ANSWERED, Held())
        lab.register(1, 9)
        await asyncio.sleep(1)
        assert [asked[:2] for asked in lab.prober.asked] == [(1, 5), (1, 9)]
        assert first.is_dropped
        lab.unregister(1, 9)
        await asyncio.sleep(60)
        assert len(lab.prober.asked) == 2
        assert not lab.presence.was_reached(1, 9)

    virtually(scenario)


def test_a_node_does_not_watch_itself() -> None:
    async def scenario(lab: Lab) -> None:
        lab.register(2, 5)
        await asyncio.sleep(10)
        assert lab.prober.asked == []

    virtually(scenario)


def test_a_probe_that_fails_proves_nothing_and_is_tried_again() -> None:
    async def scenario(lab: Lab) -> None:
        lab.prober.found = lambda: 1 // 0  # type: ignore[assignment,return-value]
        lab.register(1, 5)
        await asyncio.sleep(10)
        assert len(lab.prober.asked) > 2
        assert not lab.presence.is_gone(1, 5, 10_000)

    virtually(scenario)
