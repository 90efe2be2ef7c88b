"""Errors as HTTP answers: a status and `{"detail": "a sentence"}`.

One table maps Kafka's error codes to statuses. 503 means a temporary error that is safe to retry. Unexpected errors are
logged and answered with 500.
"""

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from sskafka.client.errors import ClientError
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.servers.http.caller import caller_of
from sskafka.servers.http.record_writer import MaybeStoredError
from sskafka.servers.local.link import BrokerGoneError, RefusedError

log = logging.getLogger(__name__)

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, TOO_LARGE = 400, 401, 403, 404, 409, 413
MISDIRECTED, UNPROCESSABLE, INTERNAL, UNAVAILABLE, UNCLEAR = 421, 422, 500, 503, 504

_STATUSES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND: NOT_FOUND,
    ErrorCode.INVALID_GROUP_ID: BAD_REQUEST,
    ErrorCode.NON_EMPTY_GROUP: CONFLICT,
    ErrorCode.UNKNOWN_MEMBER_ID: CONFLICT,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: NOT_FOUND,
    ErrorCode.INVALID_TXN_STATE: CONFLICT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: FORBIDDEN,
    ErrorCode.TOPIC_ALREADY_EXISTS: CONFLICT,
    ErrorCode.MESSAGE_TOO_LARGE: TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: FORBIDDEN,
    ErrorCode.TOPIC_DELETION_DISABLED: FORBIDDEN,
    ErrorCode.INVALID_TOPIC_EXCEPTION: BAD_REQUEST,
    ErrorCode.INVALID_PARTITIONS: BAD_REQUEST,
    ErrorCode.INVALID_REPLICATION_FACTOR: BAD_REQUEST,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: UNAVAILABLE,
    ErrorCode.INVALID_CONFIG: BAD_REQUEST,
    ErrorCode.INVALID_REQUEST: BAD_REQUEST,
    ErrorCode.INVALID_RECORD: BAD_REQUEST,
    ErrorCode.INVALID_TIMESTAMP: BAD_REQUEST,
    ErrorCode.POLICY_VIOLATION: BAD_REQUEST,
}


_AUTHORIZATION_ERRORS = frozenset(code for code in _STATUSES if code.name.endswith("_AUTHORIZATION_FAILED"))


class ProblemBody(BaseModel):
    """The body of every error answer."""

    detail: str


PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    BAD_REQUEST: {"model": ProblemBody, "description": "The request is invalid."},
    UNAUTHORIZED: {"model": ProblemBody, "description": "The server needs a login, or the login is not valid."},
    FORBIDDEN: {
        "model": ProblemBody,
        "description": "From another site, addressed to another host, or not authorized.",
    },
    UNPROCESSABLE: {"model": ProblemBody, "description": "The body does not match the schema."},
    UNAVAILABLE: {"model": ProblemBody, "description": "Temporarily unavailable; safe to retry."},
}


def documented(statuses: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return the errors of one route for its OpenAPI description."""
    return {status: {"model": ProblemBody, "description": text} for status, text in statuses.items()}


class Problem(HTTPException):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail)


def handle_problems(app: FastAPI) -> None:
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(KafkaError)(_refused_by_kafka)
    for unavailable in (ClientError, BrokerGoneError, RefusedError):
        app.exception_handler(unavailable)(_unavailable)
    app.exception_handler(MaybeStoredError)(_unclear)
    app.exception_handler(Exception)(_unexpected)


def status_of(error: KafkaError) -> int:
    if error.code in _STATUSES:
        return _STATUSES[error.code]
    return UNAVAILABLE if error.retriable else INTERNAL


def problem(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status)


async def _refused_by_kafka(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, KafkaError)
    status = status_of(error)
    if status == INTERNAL:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    detail = error.message or error.code.name
    if error.code in _AUTHORIZATION_ERRORS:
        detail = f"{caller_of(request).principal} is not authorized: {detail}"
    return problem(status, detail)


async def _unavailable(request: Request, error: Exception) -> JSONResponse:
    return problem(UNAVAILABLE, str(error))


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    """Answer with 500. The server logs the traceback, which callers do not need."""
    return problem(INTERNAL, f"unexpected error: {type(error).__name__}")


async def _unclear(request: Request, error: Exception) -> JSONResponse:
    """Answer with 504, not 503: a retry might store the records twice."""
    return problem(UNCLEAR, str(error))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """Report where in the body the error is and what is wrong, without repeating what was sent."""
    assert isinstance(error, RequestValidationError)
    sentences = dict.fromkeys(_sentence(item) for item in error.errors())
    return problem(UNPROCESSABLE, "; ".join(sentences))


def _sentence(error: Mapping[str, Any]) -> str:
    path = error["loc"]
    if error["type"] == "json_invalid":
        return f"the body is not JSON: {error['ctx']['error']} at character {path[-1]}"
    return f"{'.'.join(str(step) for step in path[1:]) or path[0]}: {error['msg']}"
