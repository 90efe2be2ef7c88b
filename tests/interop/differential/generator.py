"""Random requests, drawn from the schemas of the messages: mostly of good form, with arguments of which many are wrong.

Values of a field are drawn by its name: topics that exist and that do not, partitions in and out of range, and so on.
What may wait (a fetch, a rebalance) is bounded, and APIs that would change the cluster as a whole are left out.
"""

import random
from typing import Any

from differential.comparison import KEYS
from differential.messages import API_BY_NAME
from differential.scripts.batches import batch
from differential.session import Session, is_encodable
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.schema import BYTES, RECORDS, STRING, UUID, Primitive

# Scripts ask these, if at all: they change the cluster, fill the disk, wait for other clients, or are not supported.
LEFT_OUT = {
    "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter", "UpdateFeatures", "UnregisterBroker", "AlterConfigs",
    "IncrementalAlterConfigs", "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterClientQuotas",
    "AlterUserScramCredentials", "JoinGroup", "AlterPartitionReassignments", "InitializeShareGroupState",
    "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary",
    "ListGroups", "ListTransactions", "DescribeLogDirs", "DescribeQuorum", "ShareFetch", "ShareAcknowledge",
    "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ApiVersions", "SaslHandshake", "SaslAuthenticate",
    "GetTelemetrySubscriptions", "PushTelemetry", "WriteTxnMarkers", "ShareGroupDescribe", "StreamsGroupDescribe",
    "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets", "ListConfigResources",
}  # fmt: skip
ARRAY_LENGTHS = (0, 1, 1, 1, 2, 3)


class Generator:
    """Requests for one script; the same seed and names give the same requests on both systems."""

    def __init__(self, session: Session, seed: int, topics: dict[str, bytes]) -> None:
        self._session = session
        self._random = random.Random(seed)
        self._topics = topics
        self._apis = sorted(
            name
            for name, api in API_BY_NAME.items()
            if name not in LEFT_OUT and session.versions(name) and api.key < 10_000
        )

    def request(self) -> tuple[str, int, Any]:
        """The name of an API, a version, and a request that the version can carry."""
        while True:
            name = self._random.choice(self._apis)
            version = self._random.choice(self._session.versions(name))
            message = self._struct(API_BY_NAME[name].request_class(), version)
            if is_encodable(message, version) and not _creates_topics(message):
                return name, version, message

    def _struct(self, cls: type[Any], version: int) -> Any:
        layout = layout_of(cls, version)
        values = {field.name: self._value(cls, field, version) for field in layout.plain}
        values |= {
            field.name: self._value(cls, field, version) for field in layout.tagged if self._random.random() < 0.1
        }
        self._match_topic(values)
        return cls(**values)

    def _match_topic(self, values: dict[str, Any]) -> None:
        """A name and an id in one struct belong to the same topic, so that all versions ask about the same one."""
        for name in ("name", "topic"):
            if "topic_id" in values and name in values:
                values["topic_id"] = self._topics.get(values[name] or "", bytes(16))

    def _value(self, cls: type[Any], field: Field, version: int) -> Any:
        if field.is_nullable(version) and self._random.random() < 0.15:
            return None
        if field.is_array:
            elements = [self._element(cls, field, version) for _ in range(self._random.choice(ARRAY_LENGTHS))]
            return list({_key(one): one for one in elements}.values())
        return self._element(cls, field, version)

    def _element(self, cls: type[Any], field: Field, version: int) -> Any:
        if not isinstance(field.element, Primitive):
            return self._struct(field.element, version)
        if field.element == STRING:
            return self._text(cls, field.name)
        if field.element == UUID:
            return self._random.choice([*self._topics.values(), bytes(16), bytes(range(16))])
        if field.element in (BYTES, RECORDS):
            return self._bytes(field.element)
        return self._number(field.name, field.element)

    def _text(self, cls: type[Any], name: str) -> str:
        own = self._session.name
        if name in {"topic", "name", "topic_name", "topic_names"}:
            return self._random.choice([*self._topics, own("none"), "bad/name", ""])
        if "group" in name and "instance" not in name:
            return own(self._random.choice(("group-1", "group-2", "none")))
        if "transactional_id" in name or (name in {"key", "coordinator_keys"}):
            return own(self._random.choice(("id-1", "id-2")))
        if "member" in name:
            return self._random.choice(("", "member-1"))
        return self._random.choice(("", "x", own("text"), "consumer", "Empty", "User:a"))

    def _bytes(self, element: Primitive) -> bytes:
        if element == RECORDS:
            good = batch(*(f"r{number}" for number in range(self._random.randint(1, 3))))
            return self._random.choice((good, good, good, good[:-2], b""))
        return self._random.choice((b"", b"x", b"\0\0\0\0\0\0"))

    def _number(self, name: str, element: Primitive) -> Any:
        if element.name == "bool":
            return self._random.random() < 0.5
        if element.name == "float64":
            return self._random.choice((0.0, 1.0, -1.0))
        if name in {"max_wait_ms", "min_bytes"}:
            return self._random.choice((0, 1, 20))
        if name in {"timeout_ms", "transaction_timeout_ms", "rebalance_timeout_ms"}:
            return self._random.choice((1000, 5000))
        if "bytes" in name:
            return self._random.choice((1, 100, 1_000_000))
        if "partition" in name or name == "index":
            return self._random.choice((0, 0, 0, 1, 1, 9, -1))
        if name == "acks":
            return self._random.choice((1, -1, -1, 2))
        if name == "replica_id":
            return self._random.choice((-1, -1, -2))
        if name in {"broker_ids", "replicas"}:
            return self._random.choice((1, 9))
        limit = {"int8": 3, "int16": 5, "uint16": 5}.get(element.name, 20)
        return self._random.choice((-1, 0, 0, 1, 1, self._random.randint(0, limit)))


def _creates_topics(message: Any) -> bool:
    """Whether topics would be created in the background: later answers would depend on when they appear."""
    return getattr(message, "allow_auto_topic_creation", False)


def _key(element: Any) -> Any:
    """What an element is about; in most requests no two elements may be about the same."""
    if not hasattr(element, "__dataclass_fields__"):
        return element
    return next((getattr(element, name) for name in KEYS if hasattr(element, name)), id(element))
