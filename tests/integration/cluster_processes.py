"""A cluster as users run it: `sskafka cluster up` on free ports, and single brokers killed, paused and started again.

Groups and transactions have the settings of a real cluster, unless a test asks for others.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from waiting import wait_until
from wire_connection import Connection

from sskafka.model.errors import ErrorCode
from sskafka.model.properties import parse_properties
from sskafka.testing.process_cluster import ProcessCluster
from sskafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sskafka.wire.messages.delete_topics import DeleteTopicsRequest
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest
from sskafka.wire.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from sskafka.wire.messages.elect_leaders import ElectLeadersRequest
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))


class PartitionState(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


class ClusterProcesses(ProcessCluster):
    """The cluster of the pytest plugin, asked with raw requests so that a test can choose the broker that answers."""

    def __init__(self, directory: Path, count: int = 3, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(count, directory=directory)
        self.settings = {"default.replication.factor": min(3, count), **(settings or {})}
        self.start_seconds = 0.0

    @property
    def bootstrap(self) -> str:
        return self.bootstrap_servers

    def start(self, *options: str) -> Self:
        began = time.monotonic()
        super().start(*options)
        self.start_seconds = time.monotonic() - began
        return self

    @property
    def up_log(self) -> str:
        """What the command said on stderr."""
        return (self.directory / "up.log").read_text(errors="replace")

    def address(self, node_id: int) -> str:
        properties = parse_properties((self.home(node_id) / "server.properties").read_text())
        return properties["listeners"].split("://", 1)[1]

    def wait_for_broker(self, node_id: int) -> None:
        """Returns when the others see it again."""
        self.wait_for_brokers(sorted({node_id, *self.running()}))

    # -- what brokers say

    def ask(self, request: Any, version: int, at: int | None = None) -> Any:
        """The answer of one broker: the given one, or any that runs."""
        for node_id in [at] if at is not None else self.running():
            try:
                with Connection(self.address(node_id)) as connection:
                    return connection.call(request, version)
            except (OSError, AssertionError):
                if at is not None:
                    raise
        raise AssertionError("no broker answers")

    def controller(self, at: int | None = None) -> int:
        return int(self.ask(DescribeClusterRequest(), 0, at).controller_id)

    def quorum(self, at: int | None = None) -> Any:
        topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[RequestPartitionData()])
        return self.ask(DescribeQuorumRequest(topics=[topic]), 2, at).topics[0].partitions[0]

    def live_brokers(self, at: int | None = None) -> set[int]:
        return {broker.broker_id for broker in self.ask(DescribeClusterRequest(), 0, at).brokers}

    def partitions(self, topic: str, at: int | None = None) -> dict[int, PartitionState]:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (answer,) = self.ask(request, 12, at).topics
        return {
            item.partition_index: PartitionState(
                item.leader_id, item.leader_epoch, list(item.replica_nodes), list(item.isr_nodes)
            )
            for item in answer.partitions
        }

    def create_topic(self, name: str, partitions: int = 3, replicas: int = 3, **configs: object) -> None:
        """Returns when every running broker knows the topic and each partition has its whole ISR."""
        settings = [CreatableTopicConfig(key.replace("_", "."), str(value)) for key, value in configs.items()]
        wanted = CreatableTopic(name, partitions, replicas, configs=settings)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=15_000)
        (result,) = self.ask(request, 7, self.controller()).topics
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            # A test that failed runs once more in CI, and the first attempt has left its topic on the shared cluster.
            self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=15_000), 5, self.controller())
            for node_id in self.running():
                wait_until(lambda at=node_id: not self.partitions(name, at), f"broker {node_id} forgets {name}")
            (result,) = self.ask(request, 7, self.controller()).topics
        assert result.error_code == 0, result
        for node_id in self.running():
            wait_until(lambda at=node_id: self._is_whole(name, partitions, at), f"broker {node_id} knows {name}")

    def elect_preferred_leaders(self) -> None:
        """Of all partitions, as far as they are in sync."""
        answer = self.ask(ElectLeadersRequest(topic_partitions=None, timeout_ms=15_000), 2, self.controller())
        assert answer.error_code == 0, answer

    def _is_whole(self, topic: str, count: int, at: int) -> bool:
        states = self.partitions(topic, at)
        return len(states) == count and all(sorted(item.isr) == sorted(item.replicas) for item in states.values())

    def wait_for_brokers(self, node_ids: Sequence[int], timeout_s: float = 30) -> None:
        """Until each of these brokers answers, knows a controller and sees the others alive, and no more."""
        for node_id in node_ids:
            wait_until(lambda at=node_id: self._sees(at, node_ids), f"broker {node_id} sees {node_ids}", timeout_s)

    def _sees(self, node_id: int, expected: Sequence[int]) -> bool:
        try:
            answer = self.ask(DescribeClusterRequest(), 0, node_id)
        except (OSError, AssertionError):
            return False
        return answer.controller_id >= 0 and {item.broker_id for item in answer.brokers} == set(expected)

    def wait_for_isr(self, topic: str, node_ids: Sequence[int], timeout_s: float = 40) -> None:
        """Until these brokers are the ISR of every partition."""
        wait_until(
            lambda: all(sorted(item.isr) == sorted(node_ids) for item in self.partitions(topic).values()),
            f"{list(node_ids)} are the ISR of {topic}",
            timeout_s,
        )

    def wait_for_new_leader(self, topic: str, partition: int, old: int, timeout_s: float = 15) -> int:
        def new_leader() -> int | None:
            leader = self.partitions(topic)[partition].leader
            return leader if leader not in {-1, old} else None

        return wait_until(new_leader, f"{topic}-{partition} has a leader other than {old}", timeout_s)


StartCluster = Callable[..., ClusterProcesses]
"""What the fixture `start_cluster` is: a number of brokers and settings in, a running cluster out."""
