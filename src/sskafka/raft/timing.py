"""Timeouts and delays of a node, in milliseconds on a monotonic clock."""

from collections.abc import Callable
from typing import TypeAlias

from sskafka.model.values import value

RandomBelow: TypeAlias = Callable[[int], int]
"""Returns a random number in [0, argument): the only source of randomness of the state machine."""

_BACKOFF_BASE_MS = 50
_RETRY_DOUBLINGS_MAX = 4
_FAILOVER_PARTS = 10


@value
class Timing:
    """Settings with Kafka's names, without the prefix `controller.quorum.`."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1048576
    fetch_snapshot_max_bytes: int = 1048576
    first_election_delay_ms: int | None = None
    """Delay before the first election of a new cluster; None: a random election timeout, as for any election."""

    @property
    def fetch_wait_ms(self) -> int:
        """How long a leader may hold a fetch without records: well below the fetch timeout of followers."""
        return min(500, self.fetch_timeout_ms // 4)

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader goes on without fetches of a majority. It is longer than the fetch timeout of followers, so
        that they look for a new leader while the old one still answers them."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_interval_ms(self) -> int:
        """How long a voter may go without fetching before the leader announces itself to it again."""
        return self.fetch_timeout_ms // 2

    def election_timeout(self, random_below: RandomBelow) -> int:
        """Return a random time of one to two election timeouts, so that nodes do not campaign simultaneously."""
        return self.election_timeout_ms + random_below(self.election_timeout_ms + 1)

    def failover_delay(self, random_below: RandomBelow) -> int:
        """Return how long a follower waits after its leader was reported down.

        This is up to a tenth of the election timeout: all followers get the report within a few milliseconds, and one
        of them should complete its pre-vote and its vote before the next one starts."""
        return random_below(self.election_timeout_ms // _FAILOVER_PARTS + 1)

    def election_backoff(self, failed_elections: int, random_below: RandomBelow) -> int:
        ceiling = min(self.election_backoff_max_ms, _BACKOFF_BASE_MS << min(failed_elections, 10))
        return 1 + random_below(max(1, ceiling))

    def successor_backoff(self, position: int, successors: int) -> int:
        """Return 0 for the first preferred successor; each further one waits twice as long as the one before."""
        return 0 if position == 0 else self.election_backoff_max_ms >> (successors - position)

    def retry_backoff(self, failures: int) -> int:
        return self.retry_backoff_ms << min(max(failures - 1, 0), _RETRY_DOUBLINGS_MAX)
