"""A session that cannot connect leaves nothing open; one that can does not depend on a single broker."""

import asyncio

import pytest

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig
from sskafka.client.errors import BrokerUnavailableError, ConnectionLostError
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


def test_a_broker_that_hangs_up_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that is about to start: the others of the cluster may be well."""
    answers = [ConnectionLostError("closed by the broker"), ConnectionLostError("closed by the broker"), None]

    async def refresh(cluster: Cluster) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    monkeypatch.setattr(Cluster, "refresh", refresh)
    with ClusterSession("127.0.0.1:9", ConnectionConfig()):
        assert not answers
