"""The topics in what consumers of a classic group tell each other; opaque bytes to everybody else."""

from collections.abc import Iterable
from struct import Struct

from sskafka.wire.codec import MalformedMessageError, decode
from sskafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"

_INT16 = Struct(">h")
_VERSION_MAX = 3


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """None when one of the subscriptions cannot be read: somebody uses the protocol's name for something else."""
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
    """None for bytes that are something else."""
    if len(metadata) < _INT16.size:
        return None
    version = min(int(_INT16.unpack_from(metadata)[0]), _VERSION_MAX)
    if version < 0:
        return None
    try:
        return decode(ConsumerProtocolSubscription, version, metadata, _INT16.size, allow_trailing=True)
    except MalformedMessageError:
        return None
