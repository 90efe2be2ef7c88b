"""Errors of the client itself. Error codes in broker responses are raised as `KafkaError`.

After `ConnectionLostError` and `RequestTimeoutError` it is unknown whether the broker applied the request.
"""

from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import TopicPartition


class ClientError(Exception):
    """Base of all errors that occur without an error code from a broker."""

    retriable = False


class BrokerUnavailableError(ClientError):
    """No connection could be made; nothing was sent."""

    retriable = True


class ConnectionRefusedByBrokerError(BrokerUnavailableError):
    """The host refused the connection: no process listens at the broker's address."""


class NobodyListensError(ConnectionRefusedByBrokerError):
    """Every address refused the connection, and this client has never reached the cluster."""


class AuthenticationFailedError(ClientError):
    """The broker refused the login or the certificate of this client, or this client the certificate of the broker.

    Not retriable: the same credentials would fail again."""


class ConnectionLostError(ClientError):
    """The connection ended while a request waited for its response."""

    retriable = True


class RequestTimeoutError(ClientError):
    """The response did not arrive in time."""

    retriable = True


class ProtocolError(ClientError):
    """The peer does not speak the Kafka protocol, or sent an invalid message."""


class UnsupportedApiError(ClientError):
    """The broker and this client have no version of the API in common."""


class ConfigError(ClientError, ValueError):
    """A client property is unknown or has an invalid value."""


class ProducerClosedError(ClientError):
    """The producer was closed while a record waited to be buffered, or before."""


class NoOffsetForPartitionError(ClientError):
    """A position is out of range and `auto.offset.reset` is `none`."""


class LogTruncatedError(ClientError):
    """The log lost records that were already read, because of an unclean leader election."""


class CommitFailedError(KafkaError):
    """The group refused to commit offsets, because this consumer is no longer the member that it was: the partitions
    may belong to another member now. Not retriable: call `poll`, which joins the group again."""

    @property
    def retriable(self) -> bool:
        return False


class UnknownTopicError(KafkaError):
    """Fresh metadata has no such topic or partition. Not retriable: retries would only hide a misspelled name."""

    def __init__(self, message: str, topic: str = "") -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        self.topic = topic

    @property
    def retriable(self) -> bool:
        return False


class UnknownPartitionError(UnknownTopicError):
    """The topic exists but does not have this partition."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(f"topic {topic!r} has no partition {partition}: it has {count}, counted from 0", topic)


class UnknownGroupError(KafkaError):
    """There is no such group."""

    def __init__(self, group: str) -> None:
        super().__init__(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
        self.group = group


def is_retriable(error: Exception) -> bool:
    return isinstance(error, ClientError | KafkaError) and error.retriable


def broker_error(code: int, message: str | None = None) -> KafkaError:
    """Return the error for a code in a response; the message keeps a code that this client does not know."""
    try:
        return KafkaError(ErrorCode(code), message or "")
    except ValueError:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker answered with unknown error {code}: {message or ''}"
        )


def produce_error(code: int, message: str | None, partition: TopicPartition) -> KafkaError:
    """Return the error for a partition in a Produce response. Brokers send a message only if single records failed."""
    if code == ErrorCode.MESSAGE_TOO_LARGE and not message:
        message = f"a batch for {partition} is larger than the topic's max.message.bytes"
    return broker_error(code, message or f"produce to {partition}")


def fetch_error(code: int, partition: TopicPartition) -> KafkaError:
    """Return the error for a partition in a Fetch response, which has no message."""
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return broker_error(code, f"fetch of {partition}: this user needs READ on the topic")
    error = broker_error(code)
    return KafkaError(error.code, f"fetch of {partition}: {error}")


def raise_for(code: int, message: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise broker_error(code, message)
