"""The points that are kept, within bounds however many topics and groups there are. Pure.

The series of the cluster is always kept. The series of a topic or group begins when somebody first looks at it, and
goes on for 15 minutes after the last look. When there are too many, the one that was looked at longest ago is dropped.
"""

from collections import OrderedDict, deque
from typing import Final, Generic, NamedTuple, TypeVar

from sskafka.client.broker_load import TopicUsage
from sskafka.servers.http.history.rates import LoadPoint, LoadSample, TopicPoint, load_point, topic_point

SPAN_MS: Final = 15 * 60 * 1000
INTERVAL_MS: Final = 5_000
GROUP_INTERVAL_MS: Final = 15_000
"""The lag of a group costs several requests."""
GAP_MS: Final = 4 * INTERVAL_MS
"""A sample that follows a longer gap has no rates: an average would hide what happened in between."""
TOPICS_MAX: Final = 100
GROUPS_MAX: Final = 20

T = TypeVar("T")


class LagPoint(NamedTuple):
    time_ms: int
    lag: int
    lag_ms: int | None


class _Series(Generic[T]):
    def __init__(self, interval_ms: int) -> None:
        self.points: deque[T] = deque(maxlen=SPAN_MS // interval_ms)
        self.looked_at_ms = 0


class WatchedSeries(Generic[T]):
    """Series by name. `look` keeps one going; points are added only to series that somebody looks at."""

    def __init__(self, series_max: int, interval_ms: int) -> None:
        self._series: OrderedDict[str, _Series[T]] = OrderedDict()
        self._series_max = series_max
        self._interval_ms = interval_ms

    def look(self, name: str, now_ms: int) -> tuple[T, ...]:
        """Return the points of the series, oldest first, which goes on from now on."""
        series = self._series.setdefault(name, _Series(self._interval_ms))
        series.looked_at_ms = now_ms
        self._series.move_to_end(name)
        while len(self._series) > self._series_max:
            self._series.popitem(last=False)
        return tuple(series.points)

    def watched(self, now_ms: int) -> list[str]:
        """Return the names of the series to sample, and forget those that nobody has looked at for long."""
        for name in [name for name, one in self._series.items() if now_ms - one.looked_at_ms > SPAN_MS]:
            del self._series[name]
        return list(self._series)

    def add(self, name: str, point: T) -> None:
        if name in self._series:
            self._series[name].points.append(point)


class History:
    def __init__(self) -> None:
        self._points: deque[LoadPoint] = deque(maxlen=SPAN_MS // INTERVAL_MS)
        self._newest: LoadSample | None = None
        self._usages: tuple[int, dict[str, TopicUsage]] = (0, {})
        self.topics: WatchedSeries[TopicPoint] = WatchedSeries(TOPICS_MAX, INTERVAL_MS)
        self.groups: WatchedSeries[LagPoint] = WatchedSeries(GROUPS_MAX, GROUP_INTERVAL_MS)

    @property
    def points(self) -> tuple[LoadPoint, ...]:
        """The traffic of the cluster, oldest first."""
        return tuple(self._points)

    def add(self, sample: LoadSample) -> None:
        """Add a sample of all brokers. A sample that is not newer than the last one is left out."""
        before = self._newest
        if before is not None and sample.time_ms <= before.time_ms:
            return
        self._newest = sample
        if before is not None and sample.time_ms - before.time_ms <= GAP_MS:
            self._points.append(load_point(before, sample))

    def add_usages(self, time_ms: int, usages: dict[str, TopicUsage]) -> None:
        """Add the counters of the topics that are watched."""
        before_ms, before = self._usages
        self._usages = (time_ms, usages)
        if not 0 < time_ms - before_ms <= GAP_MS:
            return
        for name, usage in usages.items():
            if name in before:
                self.topics.add(name, topic_point(before[name], before_ms, usage, time_ms))
