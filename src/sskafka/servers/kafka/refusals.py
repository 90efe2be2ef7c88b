"""Responses that refuse a whole request with one error code.

Most responses have a field for the error of the request. In the others each item of the request gets the error, as
Apache Kafka's `getErrorResponse` does; versions of DescribeLogDirs without an error code get an empty list.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.frames import error_frame, response_frame
from sskafka.servers.kafka.request import Request
from sskafka.servers.kafka.sliced_handlers import decode_request
from sskafka.wire.apis import Api, ApiKey
from sskafka.wire.layout import layout_of
from sskafka.wire.schema import Message

Refuse = Callable[[Any, Any, ErrorCode], Any]
"""From request message, class of the response, and error to the response."""


def refusal_frame(api: Api, request: Request, code: ErrorCode) -> bytes | None:
    """Return the response, or None if the response has no place for an error: then the connection is closed."""
    if api.key not in _REFUSALS:
        return error_frame(api.key, request.version, request.correlation_id, code)
    message = decode_request(api.request_class(), request)
    response = refusal(api, message, code)
    return response_frame(api.key, request.version, request.correlation_id, response)


def refusal(api: Api, message: Message, code: ErrorCode) -> Any:
    return _REFUSALS.get(api.key, _with_code)(message, api.response_class(), code)


def element_class(cls: type[Any], array: str) -> Any:
    """Return the class of the elements of an array field. The class has a different name in each message."""
    (element,) = (field.element for field in layout_of(cls, 0).plain if field.name == array)
    return element


def _with_code(message: Any, response_class: Any, code: ErrorCode) -> Any:
    return response_class(error_code=code)


def _elect_leaders(message: Any, response_class: Any, code: ErrorCode) -> Any:
    """In version 0 the error of the request is that of each partition."""
    result = element_class(response_class, "replica_election_results")
    partition = element_class(result, "partition_result")
    results = [
        result(topic.topic, [partition(index, code) for index in topic.partitions])
        for topic in message.topic_partitions or ()
    ]
    return response_class(error_code=code, replica_election_results=results)


def _acls_not_created(message: Any, response_class: Any, code: ErrorCode) -> Any:
    result = element_class(response_class, "results")
    return response_class(results=[result(code, None) for _ in message.creations])


def _acls_not_deleted(message: Any, response_class: Any, code: ErrorCode) -> Any:
    result = element_class(response_class, "filter_results")
    return response_class(filter_results=[result(code, None) for _ in message.filters])


def _log_dirs_not_altered(message: Any, response_class: Any, code: ErrorCode) -> Any:
    result = element_class(response_class, "results")
    partition = element_class(result, "partitions")
    topics = chain.from_iterable(directory.topics for directory in message.dirs)
    return response_class(
        results=[result(topic.name, [partition(index, code) for index in topic.partitions]) for topic in topics]
    )


def _quotas_not_altered(message: Any, response_class: Any, code: ErrorCode) -> Any:
    result = element_class(response_class, "entries")
    return response_class(entries=[result(code, None, entry.entity) for entry in message.entries])


def _credentials_not_altered(message: Any, response_class: Any, code: ErrorCode) -> Any:
    result = element_class(response_class, "results")
    users = dict.fromkeys(change.name for change in chain(message.deletions, message.upsertions))
    return response_class(results=[result(user, code, None) for user in users])


def _share_state_refused(message: Any, response_class: Any, code: ErrorCode) -> Any:
    result = element_class(response_class, "results")
    partition = element_class(result, "partitions")
    return response_class(
        results=[
            result(topic.topic_id, [partition(item.partition, code) for item in topic.partitions])
            for topic in message.topics
        ]
    )


_REFUSALS: Mapping[int, Refuse] = {
    ApiKey.CREATE_ACLS: _acls_not_created,
    ApiKey.DELETE_ACLS: _acls_not_deleted,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _log_dirs_not_altered,
    ApiKey.DESCRIBE_LOG_DIRS: _with_code,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas_not_altered,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _credentials_not_altered,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _share_state_refused,
    ApiKey.READ_SHARE_GROUP_STATE: _share_state_refused,
    ApiKey.WRITE_SHARE_GROUP_STATE: _share_state_refused,
    ApiKey.DELETE_SHARE_GROUP_STATE: _share_state_refused,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _share_state_refused,
}
