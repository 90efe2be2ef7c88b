"""`sskafka challenge`: a tester for programs that take the "build your own Kafka" challenge."""

import os
import random
import signal
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sskafka.challenge.log_directory import DirectoryInUseError
from sskafka.challenge.program import ProgramError, Repository
from sskafka.challenge.tester import (
    BadCasesError,
    Case,
    ChallengeSettings,
    ChallengeTester,
    Verdict,
    all_cases,
    cases_named,
    parse_cases,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_item, talk

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_OUTPUT_LINES_MAX = 20


@app.command()
def challenge(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="PROGRAM_DIR",
            envvar="CODECRAFTERS_REPOSITORY_DIR",
            help="Directory with your_program.sh and codecrafters.yml.",
        ),
    ] = None,
    slugs: Annotated[
        list[str] | None, typer.Option("--stage", "-s", metavar="SLUG", help="Only this stage; may be repeated.")
    ] = None,
    port: Annotated[int, typer.Option(help="Port on which the program must listen.")] = 9092,
    controller_port: Annotated[
        int, typer.Option(help="Port of its controller listener, for the properties file.")
    ] = 9093,
    properties: Annotated[Path, typer.Option(help="Properties file for the program; it is overwritten.")] = Path(
        "/tmp/server.properties"
    ),
    log_dir: Annotated[Path, typer.Option(help="Log directory; it is recreated for each stage.")] = Path(
        "/tmp/kraft-combined-logs"
    ),
    shared: Annotated[bool, typer.Option("--shared", help="Start the program once for all stages.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of names, ids and messages, to repeat an earlier run.")] = None,
    start_timeout: Annotated[float, typer.Option(help="Seconds to wait until the program listens.")] = 10.0,
    answer_timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 10.0,
    list_stages: Annotated[bool, typer.Option("--list", help="List the stages and exit.")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Test a program that implements a Kafka broker, stage by stage.

    If not given, the directory is taken from CODECRAFTERS_REPOSITORY_DIR and the stages from
    CODECRAFTERS_TEST_CASES_JSON."""
    cases = _cases(slugs)
    if list_stages:
        _list(cases, output)
        return
    if directory is None:
        raise typer.BadParameter("name the program's directory", param_hint="PROGRAM_DIR")
    settings = ChallengeSettings(
        properties.absolute(),
        log_dir.absolute(),
        port,
        controller_port,
        random.randrange(2**31) if seed is None else seed,
        start_timeout,
        answer_timeout,
        shared,
    )
    signal.signal(signal.SIGTERM, _leave)
    failed = _run(directory, settings, cases, output)
    if failed:
        raise CommandError(
            f"{failed} of {len(cases)} stages failed",
            f"repeat with the same names and messages: --seed {settings.seed}",
        )


def _list(cases: list[Case], output: Format) -> None:
    if output.is_data:
        print_data(output, [{"slug": case.stage.slug, "title": case.title} for case in cases])
        return
    for case in cases:
        print(f"{case.stage.slug:5} {case.title}")


def _leave(number: int, _frame: object) -> NoReturn:
    """Raise an exception, so that the program under test is stopped on the way out."""
    raise SystemExit(128 + number)


def _cases(slugs: list[str] | None) -> list[Case]:
    text = os.environ.get("CODECRAFTERS_TEST_CASES_JSON")
    try:
        if slugs:
            return cases_named(slugs)
        return parse_cases(text) if text else all_cases()
    except BadCasesError as error:
        raise typer.BadParameter(str(error)) from error


def _run(directory: Path, settings: ChallengeSettings, cases: list[Case], output: Format) -> int:
    """Run the stages and return the number of failed ones."""
    failed = 0
    try:
        repository = Repository.at(directory)
        hear = _talk if repository.is_debug else _ignore
        for verdict in ChallengeTester(repository, settings, hear).run(cases):
            failed += not verdict.passed
            if output.is_data:
                print_item(output, _as_json(verdict))
            else:
                _print(verdict, repository.is_debug)
    except ProgramError as error:
        raise CommandError(str(error), "PROGRAM_DIR has your_program.sh and codecrafters.yml in it") from error
    except DirectoryInUseError as error:
        raise CommandError(str(error), "--log-dir DIR names another place, or remove it") from error
    return failed


def _talk(case: Case, line: str) -> None:
    talk(f"[{case.prefix}] {line}")


def _ignore(_case: Case, _line: str) -> None:
    pass


def _print(verdict: Verdict, is_debug: bool) -> None:
    prefix = f"[{verdict.case.prefix}]"
    print(f"{prefix} {verdict.case.title}: {'passed' if verdict.passed else 'FAILED'}")
    for line in verdict.findings:
        print(f"{prefix}   {line}")
    if is_debug or not verdict.passed:
        for line in verdict.output.splitlines()[-_OUTPUT_LINES_MAX:]:
            print(f"{prefix} [your_program] {line}")


def _as_json(verdict: Verdict) -> dict[str, object]:
    case = verdict.case
    return {"slug": case.stage.slug, "title": case.title, "passed": verdict.passed, "findings": verdict.findings}
