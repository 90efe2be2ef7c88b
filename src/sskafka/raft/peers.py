"""Requests to other nodes: at most one in flight per node, with a timeout, and a backoff after a failure.

A response counts only while its request is in flight. A role change drops all requests, so that a late response to a
request of the old role has no effect.
"""

from sskafka.raft.messages import PeerRequest
from sskafka.raft.timing import Timing


class Peers:
    __slots__ = ("_failures", "_in_flight", "_not_before_ms", "_timing")

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._in_flight: dict[int, tuple[PeerRequest, int]] = {}
        self._not_before_ms: dict[int, int] = {}
        self._failures: dict[int, int] = {}

    def forget(self) -> None:
        self._in_flight.clear()
        self._not_before_ms.clear()
        self._failures.clear()

    def sent(self, node_id: int, request: PeerRequest, now_ms: int) -> None:
        self._in_flight[node_id] = (request, now_ms + self._timing.request_timeout_ms)

    def complete(self, node_id: int, request: PeerRequest) -> bool:
        """Remove the request in flight to that node; return False if `request` is not the one in flight."""
        waiting = self._in_flight.get(node_id)
        if waiting is None or waiting[0] != request:
            return False
        del self._in_flight[node_id]
        return True

    def succeeded(self, node_id: int) -> None:
        self._failures.pop(node_id, None)
        self._not_before_ms.pop(node_id, None)

    def failed(self, node_id: int, now_ms: int) -> None:
        failures = self._failures.get(node_id, 0) + 1
        self._failures[node_id] = failures
        self._not_before_ms[node_id] = now_ms + self._timing.retry_backoff(failures)

    def failures(self, node_id: int) -> int:
        return self._failures.get(node_id, 0)

    def expire(self, now_ms: int) -> None:
        late = [node_id for node_id, (_, deadline_ms) in self._in_flight.items() if deadline_ms <= now_ms]
        for node_id in late:
            del self._in_flight[node_id]
            self.failed(node_id, now_ms)

    def next_request_at_ms(self, node_id: int) -> int:
        """Return the earliest time for the next request to that node, as known now."""
        waiting = self._in_flight.get(node_id)
        return waiting[1] if waiting else self._not_before_ms.get(node_id, 0)
