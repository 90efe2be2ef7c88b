"""How long the shards of a coordinator took to load: while they load, whoever asks them is sent away."""

from collections.abc import Iterator

from sskafka.model.counters import Sample


class LoadCounters:
    __slots__ = ("count", "longest_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.longest_ms = 0.0

    def loaded(self, took_ms: float) -> None:
        self.count += 1
        self.total_ms += took_ms
        self.longest_ms = max(self.longest_ms, took_ms)

    def samples(self, prefix: str) -> Iterator[Sample]:
        yield Sample(prefix + "partition_load_total", (), self.count)
        yield Sample(prefix + "partition_load_time_avg", (), self.total_ms / self.count if self.count else 0)
        yield Sample(prefix + "partition_load_time_max", (), self.longest_ms)
