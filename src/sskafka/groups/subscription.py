"""The subscriptions of consumers in a classic group, which are opaque bytes in other groups."""

from collections.abc import Iterable
from struct import Struct

from sskafka.wire.codec import MalformedMessageError, decode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"

_INT16 = Struct(">h")
_VERSION_MAX = 3


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics, or None if a subscription cannot be decoded: it has another format."""
    topics: set[str] = set()
    for metadata in subscriptions:
        of_member = _topics_of(metadata)
        if of_member is None:
            return None
        topics.update(of_member)
    return frozenset(topics)


def _topics_of(metadata: bytes) -> list[str] | None:
    subscription = read_subscription(metadata)
    return None if subscription is None else list(subscription.topics)


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
