import json
from typing import Any

import pytest
from metadata_clusters import replayed
from partition_changes import fence, replicated

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import BrokerEndpoint, ConfigRecord, PartitionChangeRecord, RegisterBrokerRecord
from sskafka.metadata.zookeeper_view import NoNodeError, ZooKeeperView
from sskafka.model.ids import uuid_text


def view(image: ClusterImage, controller_id: int = 1) -> ZooKeeperView:
    return ZooKeeperView(image, cluster_id="abc", controller_id=controller_id, controller_epoch=14)


def got(image: ClusterImage, path: str) -> Any:
    return json.loads(view(image).get(path) or "null")


def test_the_root_has_zookeepers_nodes() -> None:
    assert view(replicated()).ls("/") == [
        "admin",
        "brokers",
        "cluster",
        "config",
        "consumers",
        "controller",
        "controller_epoch",
        "isr_change_notification",
        "log_dir_event_notification",
    ]
    assert view(replicated()).ls("/brokers") == ["ids", "seqid", "topics"]
    assert "controller" not in view(replicated(), controller_id=-1).ls("/")


def test_the_state_of_a_partition() -> None:
    shown = view(replicated(2)).get("/brokers/topics/t/partitions/0/state")
    assert shown == '{"controller_epoch":14,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'


def test_only_unfenced_brokers_are_listed() -> None:
    image = replicated()
    endpoint = BrokerEndpoint("PLAINTEXT", "192.168.1.125", 9092, 0)
    replayed(image, [RegisterBrokerRecord(10, broker_epoch=99, end_points=[endpoint], rack=None, fenced=False)])
    fence(image, 2)
    assert view(image).ls("/brokers/ids") == ["1", "3", "10"]
    assert view(image).get("/brokers/ids/10") == (
        '{"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://192.168.1.125:9092"],'
        '"jmx_port":-1,"host":"192.168.1.125","timestamp":"-1","port":9092,"version":4}'
    )


def test_controller_and_cluster() -> None:
    image = replicated()
    assert view(image).get("/controller") == '{"version":1,"brokerid":1,"timestamp":"-1"}'
    assert view(image).get("/controller_epoch") == "14"
    assert got(image, "/cluster/id") == {"version": "1", "id": "abc"}


def test_topics_and_reassignments() -> None:
    image = replicated(3)
    topic_id = image.topics_by_name["t"].topic_id
    assert view(image).ls("/admin") == ["delete_topics"]
    replayed(image, [PartitionChangeRecord(0, topic_id, adding_replicas=[2], removing_replicas=[3])])
    assert got(image, "/brokers/topics/t") == {
        "partitions": {"0": [1, 2, 3]},
        "topic_id": uuid_text(topic_id),
        "adding_replicas": {"0": [2]},
        "removing_replicas": {"0": [3]},
        "version": 3,
    }
    moves = got(image, "/admin/reassign_partitions")
    assert moves["partitions"] == [{"topic": "t", "partition": 0, "replicas": [1, 2]}]


def test_settings() -> None:
    image = replicated(3, retention_ms="5")
    replayed(image, [ConfigRecord(4, "", "log.retention.ms", "7"), ConfigRecord(4, "2", "num.io.threads", "3")])
    assert view(image).ls("/config") == ["brokers", "changes", "clients", "ips", "topics", "users"]
    assert got(image, "/config/topics/t") == {"version": 1, "config": {"retention.ms": "5"}}
    assert view(image).ls("/config/brokers") == ["<default>", "2"]
    assert got(image, "/config/brokers/<default>")["config"] == {"log.retention.ms": "7"}


def test_walk_yields_everything_below_a_path() -> None:
    paths = [path for path, _ in view(replicated(2)).walk("/brokers/topics/")]
    assert paths == [
        "/brokers/topics",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
    ]
    assert next(view(replicated(2)).walk())[0] == "/"


def test_a_missing_path() -> None:
    with pytest.raises(NoNodeError, match="Node does not exist: /brokers/ids/7"):
        view(replicated()).get("/brokers/ids/7")
