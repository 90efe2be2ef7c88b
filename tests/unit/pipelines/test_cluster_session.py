"""A session that cannot connect leaves nothing open."""

import asyncio

import pytest

from sskafka.client.config import ConnectionConfig
from sskafka.client.errors import BrokerUnavailableError
from sskafka.pipelines.connector.planning import ClusterSession


def test_where_nobody_listens_the_loop_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def noted() -> asyncio.AbstractEventLoop:
        loops.append(make())
        return loops[-1]

    monkeypatch.setattr(asyncio.events, "new_event_loop", noted)
    with pytest.raises(BrokerUnavailableError):
        ClusterSession("127.0.0.1:9", ConnectionConfig())
    assert [loop.is_closed() for loop in loops] == [True]
