"""The tester: prepares the log directory, starts the program, runs stages and reports errors.

    settings and stages -> for each stage: prepare the directory, start the program, run, end the program -> verdicts

With `shared` the program is started once for all stages that do not stop it. No process outlives the tester.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sskafka.challenge.connection import ANSWER_SECONDS_MAX, Connection, NoAnswerError
from sskafka.challenge.grammar import Answer, UnreadableAnswerError, read_answer
from sskafka.challenge.log_directory import NODE_ID, prepare
from sskafka.challenge.program import Program, ProgramError, Repository
from sskafka.challenge.requests import FETCH, Request, api_versions, fetch
from sskafka.challenge.stage import Stage, StageContext, StageFailedError
from sskafka.challenge.stages import base as stages_base
from sskafka.challenge.stages import describe as stages_describe
from sskafka.challenge.stages import fetch as stages_fetch
from sskafka.challenge.stages import produce as stages_produce
from sskafka.challenge.topics import ChallengeTopics
from sskafka.model.errors import ErrorCode

STAGES: tuple[Stage, ...] = (
    *stages_base.STAGES,
    *stages_describe.STAGES,
    *stages_fetch.STAGES,
    *stages_produce.STAGES,
)
_STAGE_BY_SLUG = {stage.slug: stage for stage in STAGES}
# Former slugs of the produce stages.
_OLD_SLUGS = {"xz1": "um3", "zf2": "ck2", "gg1": "dp1", "ls8": "ps7", "yd8": "sb8", "ct4": "mf2", "ov0": "ar4"}
_POLL_SECONDS = 0.1
_LEADERLESS = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER})


class BadCasesError(ValueError):
    """The test cases are not JSON of the expected form, or name unknown stages."""


class Case(NamedTuple):
    stage: Stage
    prefix: str
    title: str


@dataclass(frozen=True, slots=True)
class ChallengeSettings:
    properties: Path = Path("/tmp/server.properties")
    log_directory: Path = Path("/tmp/kraft-combined-logs")
    port: int = 9092
    controller_port: int = 9093
    seed: int = 0
    start_seconds_max: float = 10.0
    answer_seconds_max: float = ANSWER_SECONDS_MAX
    shared: bool = False


class Verdict(NamedTuple):
    case: Case
    findings: tuple[str, ...]
    output: str
    """Output of the program so far."""

    @property
    def passed(self) -> bool:
        return not self.findings


def all_cases() -> list[Case]:
    return [Case(stage, f"stage-{stage.slug}", stage.title) for stage in STAGES]


def parse_cases(text: str) -> list[Case]:
    """Parse `[{"slug": "vi6", "tester_log_prefix": "stage-1", "title": "..."}, ...]`."""
    try:
        wanted = json.loads(text)
        return [_case(one["slug"], one.get("tester_log_prefix"), one.get("title")) for one in wanted]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, BadCasesError):
            raise
        raise BadCasesError(f"the test cases are not a JSON list of objects with a slug: {error!r}") from error


def cases_named(slugs: Iterable[str]) -> list[Case]:
    return [_case(slug, None, None) for slug in slugs]


def _case(slug: str, prefix: str | None, title: str | None) -> Case:
    stage = _STAGE_BY_SLUG.get(_OLD_SLUGS.get(slug, slug))
    if stage is None:
        raise BadCasesError(f"unknown stage {slug!r}; the stages are {', '.join(_STAGE_BY_SLUG)}")
    return Case(stage, prefix or f"stage-{slug}", title or stage.title)


@dataclass(slots=True)
class ChallengeTester:
    repository: Repository
    settings: ChallengeSettings
    say: Callable[[Case, str], None] = field(default=lambda _case, _line: None)
    """Receives the log lines of a stage."""

    def run(self, cases: Sequence[Case]) -> Iterator[Verdict]:
        """Yield a verdict after each stage. If the program is shared, stages that stop it run last."""
        if not self.settings.shared:
            for case in cases:
                yield from self._run_together([case])
            return
        staying = [case for case in cases if not case.stage.ends_program]
        yield from self._run_together(staying + [case for case in cases if case.stage.ends_program][:1])

    def _run_together(self, cases: Sequence[Case]) -> Iterator[Verdict]:
        """Run these stages on one process of the program; if it does not start, all of them fail."""
        settings, topics = self.settings, ChallengeTopics(self.settings.seed)
        is_bare = all(case.stage.is_bare for case in cases)
        prepare(settings.log_directory, [] if is_bare else topics.all)
        settings.properties.write_text(server_properties(settings))
        with closing(Program(self.repository, settings.properties, settings.port)) as program:
            try:
                program.start(settings.start_seconds_max)
            except ProgramError as error:
                yield from (Verdict(case, (str(error),), program.output) for case in cases)
                return
            if not is_bare:
                wait_for_leaders(settings.port, topics, settings.start_seconds_max, settings.answer_seconds_max)
            for case in cases:
                yield Verdict(case, self._findings(case, topics, program), program.output)

    def _findings(self, case: Case, topics: ChallengeTopics, program: Program) -> tuple[str, ...]:
        settings = self.settings
        say = partial(self.say, case)
        with StageContext(topics, settings.log_directory, program, say, settings.answer_seconds_max) as context:
            try:
                case.stage.run(context)
            except StageFailedError as error:
                return error.findings
            except NoAnswerError as error:
                return (str(error),)
        return ()


def server_properties(settings: ChallengeSettings) -> str:
    """Return Kafka's configuration file for a single node that is both broker and controller."""
    lines = {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "controller.quorum.voters": f"{NODE_ID}@localhost:{settings.controller_port}",
        "listeners": f"PLAINTEXT://:{settings.port},CONTROLLER://:{settings.controller_port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{settings.port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": settings.log_directory,
        "num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def wait_for_leaders(port: int, topics: ChallengeTopics, seconds_max: float, answer_seconds_max: float) -> None:
    """Wait until the prepared partitions have leaders: a broker that has just opened its port may not know yet that it
    leads them.

    Clients retry in this case, and so does the tester before its stages: it waits while Fetch, if the program supports
    it, reports that a prepared partition has no leader. The stages check all other responses."""
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
