"""Wait for partition leaders: a broker that has just opened its port may not know yet that it leads its partitions.

Clients retry in this case, and so does the tester before its stages: it waits while Fetch, if the program supports it,
reports that a prepared partition has no leader. The stages check all other responses.
"""

import time

from sskafka.challenge.connection import Connection, NoAnswerError
from sskafka.challenge.grammar import Answer, UnreadableAnswerError, read_answer
from sskafka.challenge.requests import FETCH, Request, api_versions, fetch
from sskafka.challenge.topics import ChallengeTopics
from sskafka.model.errors import ErrorCode

_POLL_SECONDS = 0.1
_LEADERLESS = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER})


def wait_for_leaders(port: int, topics: ChallengeTopics, seconds_max: float, answer_seconds_max: float) -> None:
    deadline = time.monotonic() + seconds_max
    request = fetch({topic.topic_id: topic.partitions for topic in topics.all})
    try:
        with Connection(port, answer_seconds_max) as connection:
            if not _lists_fetch(_ask(connection, api_versions())):
                return
            while _is_leaderless(_ask(connection, request)) and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
    except (NoAnswerError, UnreadableAnswerError):
        return


def _ask(connection: Connection, request: Request) -> Answer:
    connection.send(request.frame(0))
    return read_answer(request.answer, connection.receive())


def _lists_fetch(answer: Answer) -> bool:
    return any(field.path.endswith("].api_key") and field.value == FETCH for field in answer.fields)


def _is_leaderless(answer: Answer) -> bool:
    return any(field.path.endswith("].error_code") and field.value in _LEADERLESS for field in answer.fields)
