"""How long a node waits for what; every time here is in milliseconds on a clock that never runs backwards."""

from collections.abc import Callable
from typing import TypeAlias

from sskafka.model.values import value

RandomBelow: TypeAlias = Callable[[int], int]
"""A number from 0 up to, but not including, the argument: the machine's only source of chance."""

_BACKOFF_BASE_MS = 50
_RETRY_DOUBLINGS_MAX = 4
_SUCCESSION_PARTS = 10


@value
class Timing:
    """Settings by Kafka's names, without their prefix `controller.quorum.`."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1048576
    fetch_snapshot_max_bytes: int = 1048576
    first_election_delay_ms: int | None = None
    """How long this node waits before the first election of a new cluster; None: a random time as for any other."""

    @property
    def fetch_wait_ms(self) -> int:
        """How long a leader may keep a fetch that has nothing to answer: well below what makes a follower give up."""
        return min(500, self.fetch_timeout_ms // 4)

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader gives up later than its followers do: they look for another one while it still answers them."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_interval_ms(self) -> int:
        """A voter that has not fetched for so long is told again who leads."""
        return self.fetch_timeout_ms // 2

    def election_timeout(self, random_below: RandomBelow) -> int:
        """Between one and two election timeouts: nodes that lose their leader together must not campaign together."""
        return self.election_timeout_ms + random_below(self.election_timeout_ms + 1)

    def succession_delay(self, random_below: RandomBelow) -> int:
        """How long a follower waits that was told that its leader is down.

        Up to a tenth of the election timeout: all followers are told within a few milliseconds of each other, and one
        of them should be through with its pre-vote and its vote before the next one begins."""
        return random_below(self.election_timeout_ms // _SUCCESSION_PARTS + 1)

    def election_backoff(self, failed_elections: int, random_below: RandomBelow) -> int:
        ceiling = min(self.election_backoff_max_ms, _BACKOFF_BASE_MS << min(failed_elections, 10))
        return 1 + random_below(max(1, ceiling))

    def successor_backoff(self, position: int, successors: int) -> int:
        """The first preferred successor campaigns at once, each one after it waits twice as long as the one before."""
        return 0 if position == 0 else self.election_backoff_max_ms >> (successors - position)

    def retry_backoff(self, failures: int) -> int:
        return self.retry_backoff_ms << min(max(failures - 1, 0), _RETRY_DOUBLINGS_MAX)
