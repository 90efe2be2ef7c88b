"""Metrics of a node's part in the control plane, under the names that the JMX exporter's rules give Kafka's metrics.

They are computed when they are read, on the data loop: from the image that the data loop has, and from plain numbers
that the control loop counts.
"""

from collections.abc import Callable, Iterator

from sskafka.controller.control_plane import ControlPlane
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import NO_LEADER
from sskafka.model.counter_rate import CounterRate
from sskafka.model.counters import Sample
from sskafka.quorum.raft_counters import RecentTimes
from sskafka.runtime.clock import Clock

_CONTROLLER = "kafka_controller_kafkacontroller_"
_QUEUE = "kafka_controller_controllereventmanager_"
_RAFT = "kafka_server_raftmetrics_"
OBSERVER = "observer"


class ControlSamples:
    def __init__(self, plane: ControlPlane, image: Callable[[], ClusterImage], clock: Clock) -> None:
        """`image` returns the metadata that the data loop has."""
        self._plane = plane
        self._image = image
        self._clock = clock
        self._before = image()
        self._unclean_elections = 0
        now_ms = clock.monotonic_ms()
        self._appends = CounterRate(now_ms)
        self._fetches = CounterRate(now_ms)
        self._commits = _Average(now_ms)
        self._elections = _Average(now_ms)

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        """Count the elections that the active controller has made."""
        before, self._before = self._before, image
        if self._is_active:
            self._unclean_elections += sum(_is_unclean(before, image, *item) for item in delta.changed_partitions())

    @property
    def _is_active(self) -> bool:
        return self._plane.leader_id == self._plane.node_id

    def __iter__(self) -> Iterator[Sample]:
        yield from self._controller()
        if self._is_active:
            yield from _cluster_gauges(self._image())
        yield from self._raft()
        yield from self._plane.traffic.samples("kafka_server_raftchannelmetrics_")
        yield from self._broker_metadata()

    def _controller(self) -> Iterator[Sample]:
        plane, committed = self._plane, self._plane.committed
        lag_ms = 0 if self._is_active else max(self._clock.now_ms() - committed.last_record_ms, 0)
        yield Sample(_CONTROLLER + "activecontrollercount", (), int(self._is_active))
        yield Sample(_CONTROLLER + "metadataerrorcount", (), committed.skipped_records)
        yield Sample(_CONTROLLER + "lastappliedrecordoffset", (), committed.next_offset - 1)
        yield Sample(_CONTROLLER + "lastcommittedrecordoffset", (), plane.raft.high_watermark - 1)
        yield Sample(_CONTROLLER + "lastappliedrecordtimestamp", (), committed.last_record_ms)
        yield Sample(_CONTROLLER + "lastappliedrecordlagms", (), lag_ms)
        yield Sample("kafka_controller_controllerstats_uncleanleaderelections_total", (), self._unclean_elections)
        yield from plane.controller.queue_times.summary(_QUEUE + "eventqueuetimems")
        yield from plane.controller.processing_times.summary(_QUEUE + "eventqueueprocessingtimems")

    def _raft(self) -> Iterator[Sample]:
        plane, now_ms = self._plane, self._clock.monotonic_ms()
        node, counters = plane.raft, plane.raft_counters
        yield Sample(_RAFT + "current_leader", (), plane.leader_id)
        yield Sample(_RAFT + "current_vote", (), node.election.voted_id)
        yield Sample(_RAFT + "current_epoch", (), node.epoch)
        yield Sample(_RAFT + "current_state", (("current_state", self._state()),), 1)
        yield Sample(_RAFT + "high_watermark", (), node.high_watermark)
        yield Sample(_RAFT + "log_end_offset", (), plane.log_end_offset)
        yield Sample(_RAFT + "number_of_voters", (), len(plane.voters))
        yield Sample(_RAFT + "append_records_rate", (), self._appends.per_second(counters.appended_records, now_ms))
        yield Sample(_RAFT + "fetch_records_rate", (), self._fetches.per_second(counters.fetched_records, now_ms))
        yield from self._commits.samples(_RAFT + "commit_latency_", counters.commits, now_ms)
        yield from self._elections.samples(_RAFT + "election_latency_", counters.elections, now_ms)

    def _state(self) -> str:
        node = self._plane.raft
        return node.role_name.lower() if node.state.is_voter else OBSERVER

    def _broker_metadata(self) -> Iterator[Sample]:
        applied = self._image().next_offset - 1
        yield Sample("kafka_server_metadataloader_currentmetadataoffset", (), applied)
        yield Sample("kafka_server_brokermetadatametrics_last_applied_record_offset", (), applied)


class _Average:
    """The mean of durations over about the last minute."""

    def __init__(self, now_ms: float) -> None:
        self._total = CounterRate(now_ms)
        self._count = CounterRate(now_ms)

    def samples(self, prefix: str, times: RecentTimes, now_ms: float) -> Iterator[Sample]:
        count, total_ms = self._count.growth(times.count, now_ms), self._total.growth(times.total_ms, now_ms)
        yield Sample(prefix + "avg", (), total_ms / count if count else 0)
        yield Sample(prefix + "max", (), times.longest_ms(now_ms))


def _is_unclean(before: ClusterImage, image: ClusterImage, topic_id: bytes, index: int) -> bool:
    """Return whether the partition has a new leader that was not known to have all committed records."""
    topic = before.topics_by_id.get(topic_id)
    old = None if topic is None else topic.partitions.get(index)
    new = image.topics_by_id[topic_id].partitions[index]
    if old is None or new.leader in {NO_LEADER, old.leader}:
        return False
    return new.leader not in {*old.isr, *old.eligible_leader_replicas}


def _cluster_gauges(image: ClusterImage) -> Iterator[Sample]:
    partitions = [state for _, _, state in image.partitions()]
    fenced = sum(broker.fenced for broker in image.brokers.values())
    gauges = {
        "globaltopiccount": len(image.topics_by_id),
        "globalpartitioncount": len(partitions),
        "offlinepartitionscount": sum(state.leader == NO_LEADER for state in partitions),
        "preferredreplicaimbalancecount": sum(state.leader != state.replicas[0] for state in partitions),
        "activebrokercount": len(image.brokers) - fenced,
        "fencedbrokercount": fenced,
    }
    for name, value in gauges.items():
        yield Sample(_CONTROLLER + name, (), value)
