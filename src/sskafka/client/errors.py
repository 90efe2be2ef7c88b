"""What a client can run into besides the broker's own error codes (those are `KafkaError`).

`ConnectionLostError` and `RequestTimeoutError` leave open whether the broker acted on the request.
"""

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition


class ClientError(Exception):
    """Base of everything that goes wrong before or without a broker's answer."""

    retriable = False


class BrokerUnavailableError(ClientError):
    """No connection could be made: nothing was sent."""

    retriable = True


class ConnectionRefusedByBrokerError(BrokerUnavailableError):
    """No process listens at the broker's address: the host itself said so."""


class ConnectionLostError(ClientError):
    """The connection ended while a request waited for its answer."""

    retriable = True


class RequestTimeoutError(ClientError):
    """The answer did not come in time."""

    retriable = True


class ProtocolError(ClientError):
    """The other side does not speak Kafka's protocol, or speaks it wrongly."""


class UnsupportedApiError(ClientError):
    """The broker has no version of an API in common with this client."""


class ConfigError(ClientError, ValueError):
    """A client property that is unknown or cannot be used."""


class NoOffsetForPartitionError(ClientError):
    """A position is out of the log's range and `auto.offset.reset` is `none`."""


class LogTruncatedError(ClientError):
    """The log lost records that were already read: an unclean leader election went by."""


class UnknownTopicError(KafkaError):
    """The cluster, asked just now, has no such topic or partition: trying again would only hide a misspelling."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)

    @property
    def retriable(self) -> bool:
        return False


class UnknownPartitionError(UnknownTopicError):
    """The topic is there and has no such partition."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(f"topic {topic!r} has no partition {partition}: it has {count}, counted from 0")


def is_retriable(error: Exception) -> bool:
    return isinstance(error, ClientError | KafkaError) and error.retriable


def broker_error(code: int, message: str | None = None) -> KafkaError:
    """The error for a code in a response; codes of newer brokers are kept in the message."""
    try:
        return KafkaError(ErrorCode(code), message or "")
    except ValueError:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker answered with unknown error {code}: {message or ''}"
        )


def produce_error(code: int, message: str | None, partition: TopicPartition) -> KafkaError:
    """The error for a partition of a produce response. Brokers name a cause only where single records are to blame."""
    if code == ErrorCode.MESSAGE_TOO_LARGE and not message:
        message = f"a batch for {partition} has more bytes than the topic's max.message.bytes"
    return broker_error(code, message or f"produce to {partition}")


def raise_for(code: int, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, message)
