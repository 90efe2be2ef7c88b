import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sskafka.cli.commands import COMMANDS, app
from sskafka.cli.connecting import client_properties
from sskafka.cli.failures import CommandError, explain, report_each
from sskafka.cli.output import print_heading, print_table
from sskafka.cli.usage import key_values
from sskafka.client.errors import BrokerUnavailableError, UnknownPartitionError, UnknownTopicError
from sskafka.compiled import BUILD
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.version import __version__

HEAVY = (
    "asyncio",
    "rich",
    "pydantic",
    "yaml",
    "cramjam",
    "sskafka.client",
    "sskafka.storage",
    "sskafka.broker",
    "sskafka.wire",
)


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    script = (
        "import sys; sys.argv = ['sskafka', '--help']\n"
        "from sskafka.cli.main import run\n"
        "try: run()\nexcept SystemExit as end: assert not end.code, end.code\n"
        f"print('loaded', [name for name in sys.modules if name.startswith({HEAVY!r})])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for name, command in COMMANDS.items():
        assert name in ended.stdout
        assert command.help.split()[0] in ended.stdout
    assert ended.stdout.rstrip().endswith("loaded []")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["topic", "nonsense"],
        ["topic", "create"],
        ["--nonsense"],
        ["transaction", "list", "--state", "Nonsense"],
        ["log", "dump", "x.log", "--max-bytes", "0"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_failures_exit_with_1_and_name_the_way_out() -> None:
    result = CliRunner().invoke(app, ["topic", "list", "-b", "127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: cannot connect to 127.0.0.1:1: connection refused",
        "  try: `sskafka start` starts a broker; -b HOST:PORT names another one",
    ]


def test_debug_shows_the_traceback() -> None:
    result = CliRunner().invoke(app, ["--debug", "topic", "list", "-b", "127.0.0.1:1"])
    assert isinstance(result.exception, BrokerUnavailableError)


def test_the_address_comes_from_the_environment() -> None:
    result = CliRunner().invoke(app, ["topic", "list"], env={"SSKAFKA_BOOTSTRAP": "127.0.0.1:2"})
    assert "127.0.0.1:2" in result.stderr


def test_stages_of_the_challenge_are_listed_for_people_and_programs() -> None:
    lines = CliRunner().invoke(app, ["challenge", "--list"]).stdout.splitlines()
    listed = json.loads(CliRunner().invoke(app, ["challenge", "--list", "--format", "json"]).stdout)
    assert [f"{item['slug']:5} {item['title']}" for item in listed] == lines


def test_version() -> None:
    """It also says which build runs."""
    assert CliRunner().invoke(app, ["--version"]).stdout == f"sskafka {__version__} ({BUILD})\n"


def test_errors_have_explanations() -> None:
    assert explain(CommandError("a", "b")) == ("a", "b")
    unknown = explain(UnknownTopicError("no topic 'x'", "x"))
    assert unknown is not None
    assert "topic create x" in unknown.hint
    partition = explain(UnknownPartitionError("x", 7, 3))
    assert partition == (
        "topic 'x' has no partition 7: it has 3, counted from 0",
        "`sskafka topic describe x -p` shows the partitions",
    )
    coded = explain(KafkaError(ErrorCode.INVALID_CONFIG, "bad value"))
    assert coded is not None
    assert coded.cause == "bad value (INVALID_CONFIG)"
    assert "sskafka config describe --all" in coded.hint
    assert explain(KafkaError(ErrorCode.CORRUPT_MESSAGE, "no")) == ("no (CORRUPT_MESSAGE)", "")
    assert explain(FileNotFoundError(2, "No such file", "/x")) == ("/x: No such file", "")
    assert explain(ModuleNotFoundError(name="pyarrow")) == (
        "this needs pyarrow, which is not installed",
        "pip install 'sskafka[spark]', or in a checkout pip install '.[spark]'",
    )
    assert explain(ModuleNotFoundError(name="sskafka.nonsense")) is None
    assert explain(ZeroDivisionError()) is None


def test_pairs() -> None:
    assert key_values(["a=1", "b=x=y", "c="], "-c") == {"a": "1", "b": "x=y", "c": ""}
    assert client_properties(["linger.ms=3"]) == {"linger.ms": "3"}
    result = CliRunner().invoke(app, ["topic", "list", "-X", "linger.sm=3"])
    assert result.exit_code == 2
    assert "did you mean linger.ms?" in result.stderr


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["-X", "request.timeout.ms=soon"], "request.timeout.ms='soon': expected a whole number"),
        (["-X", "linger.ms=soon"], "linger.ms='soon': expected a whole number"),
        (["-b", "nowhere:port"], "bootstrap server 'nowhere:port' is not host:port"),
        (["-b", ","], "no bootstrap server is set"),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(options: list[str], complaint: str) -> None:
    result = CliRunner().invoke(app, ["topic", "list", *options])
    assert result.exit_code == 2
    assert complaint in result.stderr


def test_what_failed_of_several_things_is_told_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    report_each({"a": KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "it exists"), "b": KafkaError(ErrorCode.NONE, "so")})
    assert capsys.readouterr().err.splitlines() == [
        "error: a: it exists (TOPIC_ALREADY_EXISTS)",
        "  try: `sskafka topic describe a` shows it; --if-not-exists leaves it alone",
        "error: b: so (NONE)",
    ]


def test_tables_are_aligned_without_blanks_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("NAME", "N"), [("orders", 1), ("x", None), ("list", (1, 2))])
    assert capsys.readouterr().out == "NAME    N\norders  1\nx       -\nlist    [1 2]\n"


@pytest.mark.parametrize(("no_color", "is_bold"), [(None, True), ("", True), ("1", False)])
def test_headings_are_bold_on_a_terminal_that_wants_it(
    no_color: str | None, is_bold: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    print_heading("Topics")
    assert capsys.readouterr().out == ("\x1b[1mTopics\x1b[0m\n" if is_bold else "Topics\n")


def test_an_error_without_words_is_named() -> None:
    assert explain(TimeoutError()) == ("TimeoutError", "")
