"""`sskafka pipeline test`: the test cases that a user has written for a pipeline."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sskafka.cli.failures import CommandError
from sskafka.cli.output import talk
from sskafka.cli.usage import key_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sskafka.pipelines.files.cases import Case
    from sskafka.pipelines.files.variables import FileOptions


def run_tests(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE", help="Pipelines or files of cases; default: *.test.yaml here and in ./pipelines."
        ),
    ] = None,
    only: Annotated[str, typer.Option("-k", metavar="TEXT", help="Only cases whose name contains TEXT.")] = "",
    profile: Annotated[str, typer.Option("--profile", help="A profile of the pipeline file.")] = "",
    var: Annotated[
        list[str] | None, typer.Option("--var", metavar="NAME=VALUE", help="A variable of the file. Repeatable.")
    ] = None,
    master: Annotated[str, typer.Option("--master", help="Spark's master; default local[1].")] = "local[1]",
) -> None:
    """Run the test cases of pipelines: given records, expected rows.

    No broker is needed. CASES of clicks.yaml are in clicks.test.yaml. The exit code is 1 if a case fails."""
    from sskafka.pipelines.files.variables import FileOptions  # noqa: PLC0415  needs the extra

    options = FileOptions(profile, key_values(var, "--var"))
    cases = [(file, case) for file in case_files(files) for case in load(file, options) if only in case.name]
    if not cases:
        raise CommandError("there are no cases to run", "write NAME.test.yaml beside NAME.yaml, see docs/pipelines.md")
    failed = run_cases(cases, master)
    talk(f"{len(cases) - failed} passed, {failed} failed")
    if failed:
        raise typer.Exit(1)


def case_files(files: list[Path] | None) -> list[Path]:
    """Return the case files. For a pipeline file this is the file beside it."""
    from sskafka.pipelines.files.cases import CASES_SUFFIX, cases_file_of  # noqa: PLC0415  needs the extra

    if not files:
        return [file for place in (Path(), Path("pipelines")) for file in sorted(place.glob(f"*{CASES_SUFFIX}"))]
    found = [file if file.name.endswith(CASES_SUFFIX) else cases_file_of(file) for file in files]
    for file in found:
        if not file.is_file():
            raise CommandError(f"there is no file {file}", f"cases of NAME.yaml are in NAME{CASES_SUFFIX} beside it")
    return found


def load(file: Path, options: "FileOptions") -> "list[Case]":
    from sskafka.pipelines.files.cases import load_cases  # noqa: PLC0415  needs the extra
    from sskafka.pipelines.files.document import PipelineFileError  # noqa: PLC0415  see above

    try:
        return load_cases(file, options)
    except PipelineFileError as error:
        raise CommandError(str(error)) from None


def run_cases(cases: "list[tuple[Path, Case]]", master: str) -> int:
    """Print a line for each case and return how many failed."""
    from sskafka.pipelines.runner.spark_failures import reporting_spark_failures  # noqa: PLC0415  not for --help
    from sskafka.pipelines.session import CASE_CONF, SessionSettings, start_session, stop_session  # noqa: PLC0415  see above

    try:
        with reporting_spark_failures("run the command again"):
            spark = start_session(SessionSettings("sskafka pipeline test", master, CASE_CONF), talk)
            return sum(not passes(spark, file, case) for file, case in cases)
    finally:
        stop_session()


def passes(spark: "SparkSession", file: Path, case: "Case") -> bool:
    """Run a case and print what differs."""
    from sskafka.pipelines.runner.case_run import differences  # noqa: PLC0415  Spark is there now

    began = time.monotonic()
    lines = differences(spark, case)
    print(f"{'FAILED' if lines else 'passed'}  {file}: {case.name} ({time.monotonic() - began:.1f} s)")
    for line in lines:
        print(f"        {line}")
    return not lines
