"""The subscriptions of consumers in a classic group, which are opaque bytes in other groups.

    int16 version · int32 number of topics · for each topic: int16 length, name · other fields

A client decides how many topics the bytes list: two megabytes have room for half a million. So the number is looked at
before they are read, and topics that members have in common are read once.
"""

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError  # noqa: N812

from sskafka.wire.codec import MalformedMessageError, decode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"

SUBSCRIBED_MAX = 10_000
"""Topics of a group that are read to know which offsets its members need. They take up to 5 ms."""
LISTED_MAX = 40_000
BYTES_MAX = 512 * 1024
"""Bounds on what is read at once of a member that becomes one of a consumer group. Larger subscriptions do not fit into
the records of such a group: they are written there twice."""
SECTIONS_KEPT = 8

_INT16, _INT32 = Struct(">h"), Struct(">i")
_TOPICS_AT = _INT16.size + _INT32.size
_VERSION_MAX = 3


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics, or None if they are unknown: a subscription has another format, or they are too many."""
    topics: set[str] = set()
    sections: list[bytes] = []
    left = SUBSCRIBED_MAX
    for metadata in subscriptions:
        count = listed_count(metadata)
        if count is None:
            return None
        if any(metadata.startswith(section, _INT16.size) for section in sections):
            continue  # nearly always
        if count > left:
            return None
        try:
            names, end = _read_topics(metadata, count)
        except (StructError, UnicodeDecodeError):
            return None
        topics.update(names)
        left -= count
        sections = [metadata[_INT16.size : end], *sections[: SECTIONS_KEPT - 1]]
    return frozenset(topics)


def listed_count(encoded: bytes) -> int | None:
    """Return how many topics a subscription or an assignment lists, or None if it cannot be one."""
    if len(encoded) < _TOPICS_AT or _INT16.unpack_from(encoded)[0] < 0:
        return None
    count = int(_INT32.unpack_from(encoded, _INT16.size)[0])
    return count if count >= 0 else None


def _read_topics(metadata: bytes, count: int) -> tuple[list[str], int]:
    """Return the topics of a subscription, and the position after them."""
    names: list[str] = []
    position = _TOPICS_AT
    for _ in range(count):
        start = position + _INT16.size
        position = start + _INT16.unpack_from(metadata, position)[0]
        if not start <= position <= len(metadata):
            raise StructError("a name is longer than the subscription")
        names.append(metadata[start:position].decode())
    return names, position


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """Return the subscription, or None if the bytes are not one."""
    if len(metadata) < _INT16.size:
        return None
    version = min(int(_INT16.unpack_from(metadata)[0]), _VERSION_MAX)
    if version < 0:
        return None
    try:
        return decode(ConsumerProtocolSubscription, version, metadata, _INT16.size, allow_trailing=True)
    except MalformedMessageError:
        return None
