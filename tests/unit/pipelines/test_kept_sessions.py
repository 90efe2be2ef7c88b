"""Sessions that a process keeps between tasks; no broker is needed for that."""

from collections.abc import Iterator

import pytest

from sskafka.client.config import ConnectionConfig
from sskafka.pipelines.connector import kept_sessions
from sskafka.pipelines.connector.kept_sessions import KEPT_MAX, close_kept_sessions, kept_session
from sskafka.pipelines.connector.planning import ClusterSession

BOOTSTRAP = "127.0.0.1:9"
CONFIG = ConnectionConfig()


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    close_kept_sessions()
    yield
    close_kept_sessions()


def used(bootstrap: str = BOOTSTRAP, config: ConnectionConfig = CONFIG) -> ClusterSession:
    with kept_session(bootstrap, config) as session:
        return session


def is_closed(session: ClusterSession) -> bool:
    return str(session._runner._state).endswith("CLOSED")


def test_the_next_task_gets_the_session_of_the_last() -> None:
    first = used()
    assert used() is first
    assert used(config=ConnectionConfig(client_id="another")) is not first
    assert used() is first


def test_a_session_is_not_kept_when_its_use_fails() -> None:
    first = used()
    with pytest.raises(KeyError), kept_session(BOOTSTRAP, CONFIG):
        raise KeyError
    assert is_closed(first)
    assert used() is not first


def test_two_uses_at_once_have_a_session_each_and_one_is_kept() -> None:
    with kept_session(BOOTSTRAP, CONFIG) as outer:
        inner = used()
        assert inner is not outer
        assert not is_closed(inner)
    assert is_closed(outer)
    assert used() is inner


def test_a_forked_process_does_not_use_what_it_inherits(monkeypatch: pytest.MonkeyPatch) -> None:
    inherited = used()
    pid = kept_sessions.os.getpid()
    monkeypatch.setattr(kept_sessions.os, "getpid", lambda: pid + 1)
    assert used() is not inherited
    close_kept_sessions()
    assert not is_closed(inherited)
    inherited.close()


def test_sessions_with_many_clusters_are_not_kept_for_ever() -> None:
    sessions = [used(f"127.0.0.1:{number}") for number in range(1, KEPT_MAX + 2)]
    assert [is_closed(session) for session in sessions] == [True, *([False] * KEPT_MAX)]
