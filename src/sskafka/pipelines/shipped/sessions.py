"""Clicks of simulated users, and the sessions that they form."""

import heapq
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from sskafka.pipelines.files.pipeline import Pipeline
from sskafka.pipelines.shipped.exercise import Answer, Exercise, Message, Task, as_json
from sskafka.pipelines.shipped.reading import parquet_rows, topic_rows

GAP = timedelta(minutes=30)
"""The same as in sessions.yaml."""
PAGES = ("/", "/search", "/product", "/cart", "/checkout", "/help", "/account")
START = datetime(2026, 1, 1, tzinfo=UTC)
_GO_ON = 0.8
_USERS = 20
_CLOSING_USER = "last"


class Click(NamedTuple):
    user: str
    page: str
    at: datetime

    def message(self) -> Message:
        return Message(self.user, as_json(user=self.user, page=self.page, at=self.at))


class Session(NamedTuple):
    user: str
    started: datetime
    ended: datetime
    clicks: int
    pages: int
    first_page: str
    last_page: str


def click_stream(seed: int, users: int = _USERS, start: datetime = START) -> Iterator[Click]:
    """Yield clicks forever, ordered by time.

    A user clicks every few minutes, then pauses for longer than a session's gap."""
    chance = random.Random(seed)
    waiting = [(start + _pause(chance, 0, 1800), f"user-{number}") for number in range(users)]
    heapq.heapify(waiting)
    while True:
        at, user = waiting[0]
        yield Click(user, chance.choice(PAGES), at)
        pause = _pause(chance, 5, 600) if chance.random() < _GO_ON else _pause(chance, 1860, 7200)
        heapq.heapreplace(waiting, (at + pause, user))


def _pause(chance: random.Random, least_s: int, most_s: int) -> timedelta:
    """Return a random duration in whole milliseconds: Spark's JSON has no finer times."""
    return timedelta(milliseconds=chance.randrange(least_s * 1000, most_s * 1000))


def sessions_of(clicks: Iterable[Click]) -> Iterator[Session]:
    """Yield the sessions that the pipeline should find, computed by a simple algorithm."""
    by_user: dict[str, list[Click]] = {}
    for click in sorted(clicks, key=lambda click: click.at):
        own = by_user.setdefault(click.user, [])
        if own and click.at - own[-1].at > GAP:
            yield _session(own)
            own.clear()
        own.append(click)
    yield from map(_session, by_user.values())


def _session(clicks: list[Click]) -> Session:
    first, last = clicks[0], clicks[-1]
    pages = len({click.page for click in clicks})
    return Session(first.user, first.at, last.at, len(clicks), pages, first.page, last.page)


def exercise(task: Task) -> Exercise:
    """Clicks of about a day; one click a day later moves the watermark past the last session."""
    clicks = list(islice(click_stream(task.seed), task.records))
    closing = Click(_CLOSING_USER, "/", clicks[-1].at + timedelta(days=1))
    sessions = list(sessions_of(clicks))
    return Exercise(
        messages={"clicks": [click.message() for click in (*clicks, closing)]},
        expected=[(sink, *session) for session in sessions for sink in ("parquet", "topic")],
        found=_found,
    )


def _found(pipeline: Pipeline, bootstrap: str) -> Answer:
    yield from (("parquet", *session_of(row)) for row in parquet_rows(pipeline))
    yield from (("topic", *session_of(row)) for row in topic_rows(pipeline, bootstrap))


def session_of(row: dict[str, Any]) -> Session:
    """Return a session from a row of Parquet or from the JSON of the topic."""
    return Session(**{**row, "started": _time(row["started"]), "ended": _time(row["ended"])})


def _time(value: str | datetime) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
