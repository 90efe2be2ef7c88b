"""A lack of space or descriptors in one log directory: logged once when it begins and once when it is over.

While it lasts, every append, roll and checkpoint may fail with the same error, so these do not log it themselves. It is
over when no operation has failed for a while and there is room again.
"""

import logging
import time
from collections.abc import Callable, Iterator

from sskafka.model.counters import Sample

_log = logging.getLogger(__name__)

QUIET_S = 3.0


class Shortage:
    __slots__ = ("_began_s", "_failed", "_failed_s", "_metric", "_now_s", "_path", "_what", "episodes")

    def __init__(self, path: str, what: str, metric: str, now_s: Callable[[], float] = time.monotonic) -> None:
        """`what` completes the sentence "log directory PATH ..."."""
        self._path = path
        self._what = what
        self._metric = metric
        self._now_s = now_s
        self._began_s: float | None = None
        self._failed_s = 0.0
        self._failed = 0
        self.episodes = 0

    @property
    def is_present(self) -> bool:
        return self._began_s is not None

    def note(self, error: OSError) -> None:
        """Count an operation that failed for this reason. May be called in any thread."""
        self._failed_s = self._now_s()
        self._failed += 1
        if self._began_s is None:
            self._began_s = self._failed_s
            self.episodes += 1
            _log.error(
                "log directory %s %s: %s; writes to it fail, are retried, and are not logged until this is over",
                self._path,
                self._what,
                error,
            )

    def maybe_end(self, has_room: Callable[[], bool]) -> None:
        """To be called about once a second."""
        if self._began_s is None or self._now_s() - self._failed_s < QUIET_S or not has_room():
            return
        lasted_s, failed = self._now_s() - self._began_s, self._failed
        self._began_s, self._failed = None, 0
        _log.warning(
            "log directory %s %s no longer: %d operations failed in %.0f s", self._path, self._what, failed, lasted_s
        )

    def samples(self) -> Iterator[Sample]:
        labels = (("logDirectory", self._path),)
        yield Sample(f"kafka_log_logmanager_{self._metric}", labels, int(self.is_present))
        yield Sample(f"kafka_log_logmanager_{self._metric}_total", labels, self.episodes)
