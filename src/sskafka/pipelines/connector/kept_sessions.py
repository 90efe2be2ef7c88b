"""Connections that a process keeps between the tasks and commits it does, one after the other.

Spark uses its Python processes again. A session that served one task without an error serves the next: no connection is
made, and brokers, leaders and coordinators are known.
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
    """A session for this user alone; closed when its use ends with an error, kept otherwise.

    A new session asks no broker by itself. The process is part of the key: what a forked process inherits is not its
    own."""
    key = (os.getpid(), bootstrap, config)
    session = _sessions.pop(key, None)
    if session is None:
        session = ClusterSession(bootstrap, config, lazily=True)
    else:
        session.run(asyncio.sleep(0))  # the loop has not run since: connections that brokers closed are noticed now
    try:
        yield session
    except BaseException:
        session.close()
        raise
    if key in _sessions:  # by another use that began and ended within this one
        session.close()
        return
    _sessions[key] = session
    while len(_sessions) > KEPT_MAX:
        _forget(next(iter(_sessions)))


def close_kept_sessions() -> None:
    """Close what this process has kept."""
    for key in list(_sessions):
        _forget(key)


def _forget(key: tuple[int, str, ConnectionConfig]) -> None:
    session = _sessions.pop(key)
    if key[0] == os.getpid():
        session.close()
