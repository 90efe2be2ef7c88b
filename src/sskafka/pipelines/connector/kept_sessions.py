"""Connections that a process keeps between its tasks and commits.

Spark reuses its Python processes. A session that served one task without an error serves the next one: it has open
connections and knows brokers, leaders and coordinators.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

from sskafka.client.config import ConnectionConfig
from sskafka.pipelines.connector.planning import ClusterSession

KEPT_MAX = 4

_sessions: dict[tuple[int, str, ConnectionConfig], ClusterSession] = {}


@contextmanager
def kept_session(bootstrap: str, config: ConnectionConfig) -> Iterator[ClusterSession]:
    """A session for exclusive use; it is closed if its use ends with an error, and kept otherwise.

    A new session sends no request by itself. The process id is part of the key, because a forked process must not use
    the connections of its parent."""
    key = (os.getpid(), bootstrap, config)
    session = _sessions.pop(key, None)
    if session is None:
        session = ClusterSession(bootstrap, config, lazily=True)
    else:
        session.run(
            asyncio.sleep(0)
        )  # the event loop has not run since then: notice connections that brokers have closed
    try:
        yield session
    except BaseException:
        session.close()
        raise
    if key in _sessions:  # another use has started and ended within this one
        session.close()
        return
    _sessions[key] = session
    while len(_sessions) > KEPT_MAX:
        _forget(next(iter(_sessions)))


def close_kept_sessions() -> None:
    """Close the sessions that this process has kept."""
    for key in list(_sessions):
        _forget(key)


def _forget(key: tuple[int, str, ConnectionConfig]) -> None:
    session = _sessions.pop(key)
    if key[0] == os.getpid():
        session.close()
