"""Random requests of every API version, by the schemas of the messages: valid in form, odd in content.

Values are chosen so that requests get beyond the first check: names of topics, groups and transactional ids repeat, and
so do ids of producers and epochs. Where a value is random, edges of its type are frequent.
"""

from random import Random
from typing import Any

from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.apis import API_BY_KEY, Api, ApiKey, Listeners
from sskafka.wire.codec import UnencodableMessageError, encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.layout import Field, layout_of
from sskafka.wire.schema import Primitive

SERVED = Listeners.BROKER | Listeners.UNLISTED
TOPICS = ("fuzz-a", "fuzz-b", "fuzz-compacted")
TEXTS = (*TOPICS, "group-1", "group-2", "txn-1", "txn-2", "member", "consumer", "range", "1", "", "ä" * 40, "x" * 300)
ODD_TEXTS = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "../../x", "a b", "\0", ".")
EDGES = (-1, 0, 1, 2, 127, 128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
LIST_LENGTHS = (0, 1, 1, 1, 2, 3)
PARTITIONS_MAX = 4
WAIT_MS_MAX = 20
BOUNDED_FIELDS = {
    "num_partitions": PARTITIONS_MAX,
    "count": PARTITIONS_MAX,
    "partition_index": PARTITIONS_MAX,
    "partition": PARTITIONS_MAX,
    "partitions": PARTITIONS_MAX,
    "partition_indexes": PARTITIONS_MAX,
    "broker_ids": 2,
    "replicas": 2,
    "max_wait_ms": WAIT_MS_MAX,
    "timeout_ms": WAIT_MS_MAX,
    "rebalance_timeout_ms": WAIT_MS_MAX,
    "acks": 1,
}
"""Fields that are mostly small: otherwise nearly every request would be refused, create thousands of files, or wait."""
ENDING = {ApiKey.UNREGISTER_BROKER, ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.CONTROLLER_REGISTRATION}
"""Requests of nodes and of operators that take a broker out of its cluster on purpose."""
APIS = tuple(api for api in API_BY_KEY.values() if api.listeners & SERVED and api.key not in ENDING)


class MessageGenerator:
    def __init__(self, random: Random, topic_ids: tuple[bytes, ...]) -> None:
        self._random = random
        self._topic_ids = topic_ids

    def frame(self) -> tuple[Api, bytes]:
        """Return a request without its size, and its API."""
        random = self._random
        api = random.choice(APIS)
        version = random.randint(api.min_version, api.max_version)
        header = encode_request_header(api.key, version, random.getrandbits(31), random.choice(TEXTS))
        while True:
            try:
                return api, header + encode(self._struct(api.request_class(), version), version)
            except UnencodableMessageError:  # a text that is too long for the version, or a null
                continue

    def _struct(self, cls: type[Any], version: int) -> Any:
        layout = layout_of(cls, version)
        tagged = [field for field in layout.tagged if self._random.random() < 0.3]
        return cls(**{field.name: self._field(field, version) for field in (*layout.plain, *tagged)})

    def _field(self, field: Field, version: int) -> Any:
        if field.is_nullable(version) and self._random.random() < 0.2:
            return None
        if not field.is_array:
            return self._value(field, version)
        return [self._value(field, version) for _ in range(self._random.choice(LIST_LENGTHS))]

    def _value(self, field: Field, version: int) -> Any:
        element, random = field.element, self._random
        if not isinstance(element, Primitive):
            return self._struct(element, version)
        match element.name:
            case "string":
                return random.choice(ODD_TEXTS if random.random() < 0.05 else TEXTS)
            case "bytes":
                return random.randbytes(random.choice((0, 1, 4, 30, 200)))
            case "records":
                return self._records()
            case "uuid":
                return random.choice((*self._topic_ids, bytes(16), random.randbytes(16)))
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice((0.0, 1.5, -1.0, float("nan"), float("inf")))
            case _:
                return self._integer(field.name, element)

    def _integer(self, name: str, element: Primitive) -> int:
        random = self._random
        if name in BOUNDED_FIELDS and random.random() < 0.95:
            return random.randint(-1 if element.name[0] == "i" else 0, BOUNDED_FIELDS[name])
        bits = element.size_bytes * 8
        low, high = (0, 2**bits - 1) if element.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        value = random.choice(EDGES) if random.random() < 0.7 else random.randint(low, high)
        return min(max(value, low), high)

    def _records(self) -> bytes:
        random = self._random
        if random.random() < 0.2:
            return random.randbytes(random.choice((0, 10, 61, 100)))
        records = [
            NewRecord(
                random.choice((None, b"key")), random.randbytes(random.randint(0, 50)), timestamp=1_700_000_000_000
            )
            for _ in range(random.randint(1, 4))
        ]
        return bytes(build_batch(records))
