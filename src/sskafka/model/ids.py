"""Names and ids that every layer uses.

A `Uuid` is its 16 raw bytes: hashable, cheap to slice from a request, and the same as on the wire.
Its text form is Kafka's: URL-safe base64 without padding.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

Uuid = bytes

ZERO_UUID: Uuid = bytes(16)
METADATA_TOPIC_ID: Uuid = bytes(15) + b"\x01"
CHALLENGE_CLUSTER_ID = "IAAAAAAAQACAAAAAAAAAAQ"
"""The cluster id in log directories that testers of the Kafka challenge prepare."""
METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

TOPIC_NAME_LENGTH_MAX = 249
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


class EpochEnd(NamedTuple):
    """A leader epoch, and the offset after its last record in one log."""

    epoch: int
    end_offset: int


def uuid_text(uuid: Uuid) -> str:
    return urlsafe_b64encode(uuid).decode().rstrip("=")


def parse_uuid(text: str) -> Uuid:
    """Parse the text form of a uuid, with or without padding."""
    try:
        uuid = urlsafe_b64decode(text.rstrip("=") + "==")
    except ValueError as error:
        raise ValueError(f"{text!r} is not a base64 uuid: {error}") from error
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not a uuid: it has {len(uuid)} bytes instead of 16")
    return uuid


def topic_name_problem(name: str) -> str | None:
    """Return why `name` cannot be a topic's name, or None if it can."""
    if not name:
        return "the topic name is empty"
    if name in {".", ".."}:
        return f"the topic name cannot be {name!r}"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the topic name has {len(name)} characters, more than {TOPIC_NAME_LENGTH_MAX}"
    if not _TOPIC_NAME.fullmatch(name):
        return f"the topic name {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None
