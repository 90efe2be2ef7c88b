import asyncio
import signal

import pytest

from sskafka.cli import stop_signals
from sskafka.cli.stop_signals import StopSignals


async def receive(*numbers: signal.Signals) -> StopSignals:
    signals = StopSignals()
    for number in numbers:
        signal.raise_signal(number)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.wait_for(signals.first, 5)
    return signals


def test_two_signals_at_once_are_one() -> None:
    """As `timeout` sends them."""
    signals = asyncio.run(receive(signal.SIGTERM, signal.SIGTERM, signal.SIGINT))
    assert signals.first.result() is signal.SIGTERM
    assert not signals.second.done()


def test_one_that_comes_later_is_impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_signals, "ECHO_S", 0.0)

    async def scenario() -> StopSignals:
        signals = await receive(signal.SIGINT, signal.SIGTERM)
        await asyncio.wait_for(signals.second, 5)
        return signals

    signals = asyncio.run(scenario())
    assert (signals.first.result(), signals.second.result()) == (signal.SIGINT, signal.SIGTERM)
