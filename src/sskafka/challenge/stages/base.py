"""Stages without topics: listening, correlation ids, ApiVersions, several requests, several connections."""

from sskafka.challenge import responses
from sskafka.challenge.grammar import Answer
from sskafka.challenge.program import ProgramError
from sskafka.challenge.requests import (
    API_NAMES,
    API_VERSIONS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    PRODUCE,
    api_versions,
)
from sskafka.challenge.stage import Stage, StageContext, StageFailedError
from sskafka.model.errors import ErrorCode

_FIXED_CORRELATION_ID = 7
_HIGHEST_VERSION = 4
_REQUESTS, _CONNECTIONS = 4, 3
_VERSION_NEEDED = {API_VERSIONS: _HIGHEST_VERSION, DESCRIBE_TOPIC_PARTITIONS: 0, FETCH: 16, PRODUCE: 11}


def bind_to_a_port(context: StageContext) -> None:
    context.connect()
    context.say("stopping the program with SIGTERM")
    try:
        context.program.stop()
    except ProgramError as error:
        raise StageFailedError(str(error)) from error


def send_a_correlation_id(context: StageContext) -> None:
    """Check the simplest response: any response with the correlation id 7."""
    request = api_versions(answer=responses.CORRELATION_ID, prefix=True)
    connection = context.connect()
    context.say(f"-> {request.name}, correlation id {_FIXED_CORRELATION_ID}")
    connection.send(request.frame(_FIXED_CORRELATION_ID))
    context.check(connection, request, _FIXED_CORRELATION_ID)


def parse_the_correlation_id(context: StageContext) -> None:
    for _ in range(2):
        context.ask(api_versions(answer=responses.CORRELATION_ID, prefix=True))


def refuse_an_unknown_version(context: StageContext) -> None:
    """Expect error 35 in the layout of version 0, which every client can read."""
    version = context.topics.random.randrange(_HIGHEST_VERSION + 30, 2**15)
    expected = {"error_code": int(ErrorCode.UNSUPPORTED_VERSION)}
    answer = context.ask(api_versions(version, responses.ERROR_CODE, prefix=True), expected)
    if len(answer.data) > answer.fields[-1].end:
        context.ask(api_versions(version, responses.API_VERSIONS_V0), expected)


def list_versions(context: StageContext) -> None:
    _check_listed(context.ask(api_versions(), _SOUND), API_VERSIONS)


def requests_one_after_another(context: StageContext) -> None:
    connection = context.connect()
    for _ in range(_REQUESTS):
        request = api_versions()
        correlation_id = context.send(connection, request)
        _check_listed(context.check(connection, request, correlation_id, _SOUND), API_VERSIONS)


def requests_on_several_connections(context: StageContext) -> None:
    """Send on all connections before reading the first response; read from the last connection first."""
    request = api_versions()
    connections = [context.connect() for _ in range(_CONNECTIONS)]
    for _ in range(2):
        sent = [(connection, context.send(connection, request)) for connection in connections]
        for connection, correlation_id in reversed(sent):
            context.check(connection, request, correlation_id, _SOUND)


def pipelined_requests(context: StageContext) -> None:
    """Send several requests in one write; responses must be in the order of the requests."""
    request, connection = api_versions(), context.connect()
    sent = [context.topics.correlation_id() for _ in range(_REQUESTS)]
    connection.send(b"".join(request.frame(correlation_id) for correlation_id in sent))
    for correlation_id in sent:
        context.check(connection, request, correlation_id, _SOUND)


def list_describe_topic_partitions(context: StageContext) -> None:
    _check_listed(context.ask(api_versions(), _SOUND), API_VERSIONS, DESCRIBE_TOPIC_PARTITIONS)


def list_fetch(context: StageContext) -> None:
    _check_listed(context.ask(api_versions(), _SOUND), API_VERSIONS, FETCH)


def list_produce(context: StageContext) -> None:
    _check_listed(context.ask(api_versions(), _SOUND), API_VERSIONS, PRODUCE)


_SOUND = {"error_code": 0, "throttle_time_ms": 0}


def _check_listed(answer: Answer, *api_keys: int) -> None:
    """Check that each API is listed with a version range that includes the version used by the challenge."""
    count = answer["api_keys.length"]
    assert isinstance(count, int)
    listed = {answer[f"api_keys[{number}].api_key"]: number for number in range(count)}
    for api_key in api_keys:
        name, needed = f"{API_NAMES[api_key]} (api_key {api_key})", _VERSION_NEEDED[api_key]
        if api_key not in listed:
            raise StageFailedError(f"api_keys: {name} is missing; found {sorted(map(str, listed), key=int)}")
        path = f"api_keys[{listed[api_key]}]"
        lowest, highest = answer[f"{path}.min_version"], answer[f"{path}.max_version"]
        assert isinstance(lowest, int)
        assert isinstance(highest, int)
        if not lowest <= needed <= highest:
            raise StageFailedError(f"{path}: {name} has versions {lowest}..{highest}, but {needed} is required")


STAGES = (
    Stage("vi6", "Bind to a port", bind_to_a_port, is_bare=True, ends_program=True),
    Stage("nv3", "Send a correlation id", send_a_correlation_id, is_bare=True),
    Stage("wa6", "Parse the correlation id", parse_the_correlation_id, is_bare=True),
    Stage("nc5", "Refuse an unknown version of ApiVersions", refuse_an_unknown_version, is_bare=True),
    Stage("pv1", "List versions", list_versions, is_bare=True),
    Stage("nh4", "Requests one after another", requests_one_after_another, is_bare=True),
    Stage("sk0", "Requests on several connections", requests_on_several_connections, is_bare=True),
    Stage("pipe", "Several requests at once on one connection", pipelined_requests, is_bare=True),
)
