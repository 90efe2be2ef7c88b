"""The cluster in the layout of ZooKeeper: a tree of paths, some with JSON data in Kafka's former format.

    /admin/delete_topics   /admin/reassign_partitions (only during reassignments)
    /brokers/ids/<id>      /brokers/seqid      /brokers/topics/<topic>/partitions/<number>/state
    /cluster/id   /config/{brokers,changes,clients,ips,topics,users}   /consumers   /controller   /controller_epoch
    /isr_change_notification   /log_dir_event_notification

The view is built from an image, which may itself be assembled from the responses of any Kafka cluster. It contains only
unfenced brokers. Timestamps are not part of the metadata; they are shown as -1.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sskafka.metadata.brokers.registration import BrokerRegistration
from sskafka.metadata.delta import ConfigResource
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.metadata.partitions.image import PartitionImage
from sskafka.metadata.records import RESOURCE_BROKER, RESOURCE_TOPIC
from sskafka.model.ids import uuid_text
from sskafka.model.listeners import SECURITY_PROTOCOLS

NO_CONTROLLER = -1
UNKNOWN_TIME = "-1"
ALL_BROKERS = "<default>"
_PROTOCOL_NAMES = {number: name for name, number in SECURITY_PROTOCOLS.items()}


class NoNodeError(LookupError):
    """The path does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Node does not exist: {path}")
        self.path = path


@dataclass(frozen=True, slots=True)
class Node:
    data: str | None = None
    children: "Mapping[str, Node]" = field(default_factory=dict)


class ZooKeeperView:
    def __init__(self, image: ClusterImage, *, cluster_id: str, controller_id: int, controller_epoch: int) -> None:
        self._image = image
        self._cluster_id = cluster_id
        self._controller_id = controller_id
        self._controller_epoch = controller_epoch
        self._root = self._tree()

    def ls(self, path: str) -> list[str]:
        return list(self._node(path).children)

    def get(self, path: str) -> str | None:
        return self._node(path).data

    def walk(self, path: str = "/") -> Iterator[tuple[str, str | None]]:
        """Yield the path and everything below it, with data, parents first."""
        yield from _walk("/" + "/".join(_steps(path)), self._node(path))

    def _node(self, path: str) -> Node:
        node = self._root
        for name in _steps(path):
            if name not in node.children:
                raise NoNodeError(path)
            node = node.children[name]
        return node

    def _tree(self) -> Node:
        nodes = {
            "admin": self._admin(),
            "brokers": self._brokers(),
            "cluster": Node(children={"id": _json_node({"version": "1", "id": self._cluster_id})}),
            "config": self._config(),
            "consumers": Node(),
            "controller": _json_node({"version": 1, "brokerid": self._controller_id, "timestamp": UNKNOWN_TIME}),
            "controller_epoch": Node(str(self._controller_epoch)),
            "isr_change_notification": Node(),
            "log_dir_event_notification": Node(),
        }
        if self._controller_id == NO_CONTROLLER:
            del nodes["controller"]
        return Node(children=nodes)

    def _admin(self) -> Node:
        moves = [
            {"topic": topic.name, "partition": number, "replicas": _target(state)}
            for topic, number, state in self._image.partitions()
            if state.is_reassigning
        ]
        nodes = {"delete_topics": Node()}
        if moves:
            nodes["reassign_partitions"] = _json_node({"version": 1, "partitions": moves})
        return Node(children=nodes)

    def _brokers(self) -> Node:
        unfenced = [broker for number, broker in sorted(self._image.brokers.items()) if not broker.fenced]
        ids = {str(broker.id): _json_node(_broker(broker)) for broker in unfenced}
        topics = {name: self._topic(topic) for name, topic in sorted(self._image.topics_by_name.items())}
        return Node(children={"ids": Node(children=ids), "seqid": Node(), "topics": Node(children=topics)})

    def _topic(self, topic: TopicImage) -> Node:
        partitions = {
            str(number): Node(children={"state": _json_node(self._state(state))})
            for number, state in sorted(topic.partitions.items())
        }
        data = _json(_topic(topic))
        return Node(data, {"partitions": Node(children=partitions)} if partitions else {})

    def _state(self, state: PartitionImage) -> dict[str, Any]:
        return {
            "controller_epoch": self._controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }

    def _config(self) -> Node:
        changed = {name for kind, name in self._image.config_resources() if kind == RESOURCE_BROKER}
        brokers = {name or ALL_BROKERS: self._settings(RESOURCE_BROKER, name) for name in sorted(changed)}
        topics = {name: self._settings(RESOURCE_TOPIC, name) for name in sorted(self._image.topics_by_name)}
        nodes = {name: Node() for name in ("changes", "clients", "ips", "users")}
        nodes |= {"brokers": Node(children=brokers), "topics": Node(children=topics)}
        return Node(children=dict(sorted(nodes.items())))

    def _settings(self, kind: int, name: str) -> Node:
        return _json_node({"version": 1, "config": dict(self._image.configs(ConfigResource(kind, name)))})


def _steps(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _walk(path: str, node: Node) -> Iterator[tuple[str, str | None]]:
    yield path, node.data
    for name, child in node.children.items():
        yield from _walk(f"{path.rstrip('/')}/{name}", child)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _json_node(value: dict[str, Any]) -> Node:
    return Node(_json(value))


def _broker(broker: BrokerRegistration) -> dict[str, Any]:
    first = broker.endpoints[0] if broker.endpoints else None
    shown: dict[str, Any] = {
        "listener_security_protocol_map": {
            at.name: _PROTOCOL_NAMES.get(at.security_protocol, str(at.security_protocol)) for at in broker.endpoints
        },
        "endpoints": [f"{at.name}://{at.host}:{at.port}" for at in broker.endpoints],
        "jmx_port": -1,
        "host": first.host if first else None,
        "timestamp": UNKNOWN_TIME,
        "port": first.port if first else -1,
        "version": 4,
    }
    return shown if broker.rack is None else shown | {"rack": broker.rack}


def _topic(topic: TopicImage) -> dict[str, Any]:
    partitions = {str(number): state for number, state in sorted(topic.partitions.items())}
    adding = {number: list(state.adding_replicas) for number, state in partitions.items()}
    removing = {number: list(state.removing_replicas) for number, state in partitions.items()}
    return {
        "partitions": {number: list(state.replicas) for number, state in partitions.items()},
        "topic_id": uuid_text(topic.topic_id),
        "adding_replicas": {number: replicas for number, replicas in adding.items() if replicas},
        "removing_replicas": {number: replicas for number, replicas in removing.items() if replicas},
        "version": 3,
    }


def _target(state: PartitionImage) -> list[int]:
    return [replica for replica in state.replicas if replica not in state.removing_replicas]
