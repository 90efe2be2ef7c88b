"""Parts of a decided batch that were committed, but whose outcome nobody recorded: what becomes of them on brokers."""

import time
from collections.abc import Callable

import pytest
from test_commit_on_brokers import FIRST, RECOVERED_WITHIN_S, SECOND, THIRD, Query, new_query, query

from sskafka.client.admin import Admin
from sskafka.client.transactions import end
from sskafka.pipelines.connector import committing
from sskafka.pipelines.connector.decision import Fate, Part, Phase
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import begin

__all__ = ["new_query", "query"]


def commit_and_use_its_id_again(query: Query, session: ClusterSession, part: Part) -> None:
    """Batch 0 is decided and committed; its driver dies before it records that, and the next batch has begun."""
    query.decide(FIRST, 0, part)
    session.run(end(session.cluster, part.transaction, commit=True))
    session.run(begin(session.cluster, part.transaction.transactional_id, 60_000))


def test_a_part_that_is_hidden_for_now_is_looked_up_again(
    query: Query, new_query: Callable[[], Query], session: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is committed is not known while somebody else's transaction is open before it."""
    monkeypatch.setattr(committing, "LOOK_UP_TIMEOUT_MS", 300)
    other = Query(session, query.options.bootstrap, new_query().name, query.topic)
    open_before = other.write(FIRST, 0, 99)
    commit_and_use_its_id_again(query, session, query.write(FIRST, 0, 1))
    with pytest.raises(ConnectorError, match=r"cannot be determined now.*sskafka transaction list"):
        query.committer(SECOND).claim()
    held = query.log().peek()
    assert held is not None
    assert held.phase is Phase.DECIDED
    session.run(end(session.cluster, open_before.transaction, commit=False))
    query.commit(THIRD, 0, query.write(THIRD, 0, 1))
    query.commit(THIRD, 1, query.write(THIRD, 0, 2))
    assert query.seen(2) == [1, 2]


def test_an_attempt_that_failed_does_not_hide_the_part_that_took_its_place(
    query: Query, session: ClusterSession
) -> None:
    query.write(FIRST, 0, 1, process="0b")
    commit_and_use_its_id_again(query, session, query.write(FIRST, 0, 1, process="0a"))
    began = time.monotonic()
    query.commit(SECOND, 0, query.write(SECOND, 0, 1))
    query.commit(SECOND, 1, query.write(SECOND, 0, 2))
    assert query.seen(2) == [1, 2]
    assert time.monotonic() - began < RECOVERED_WITHIN_S


def test_a_part_whose_topic_is_gone_is_lost(query: Query, session: ClusterSession) -> None:
    commit_and_use_its_id_again(query, session, query.write(FIRST, 0, 1))
    session.run(Admin(session.cluster).delete_topics([query.topic]))
    query.committer(SECOND).claim()
    held = query.log().peek()
    assert held is not None
    assert [part.fate for part in held.parts] == [Fate.UNKNOWN]
