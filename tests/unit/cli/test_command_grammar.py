"""What all commands have in common: output formats, sizes, progress, questions, patterns, plans in files."""

import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from sskafka.cli.cluster.plan_file import plan_text, read_plan
from sskafka.cli.commands import COMMANDS, LazyGroup, app
from sskafka.cli.confirm import confirm
from sskafka.cli.failures import CommandError
from sskafka.cli.output import Format, print_data, print_item
from sskafka.cli.patterns import matching
from sskafka.cli.progress_bar import ProgressBar
from sskafka.cli.sizes import duration_text, parse_size, size_text
from sskafka.cli.usage import UsageError
from sskafka.model.ids import TopicPartition


def test_formats(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"topic": "orders", "replicas": (1, 2)}, {"topic": "on", "replicas": ()}]
    print_data(Format.JSON, rows)
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(rows))
    print_data(Format.JSONL, rows)
    assert [json.loads(line)["topic"] for line in capsys.readouterr().out.splitlines()] == ["orders", "on"]
    print_data(Format.YAML, rows)
    assert capsys.readouterr().out == (
        '- topic: orders\n  replicas:\n    - 1\n    - 2\n- topic: "on"\n  replicas: []\n'
    )
    for row in rows:
        print_item(Format.YAML, row)
    assert [row["topic"] for row in yaml.safe_load(capsys.readouterr().out)] == ["orders", "on"]


def leaves(command: Any) -> list[Any]:
    inner = getattr(command, "commands", None)
    return [leaf for one in inner.values() for leaf in leaves(one)] if inner else [command]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_mean_the_same_everywhere(name: str) -> None:
    for command in leaves(LazyGroup(commands={}).get_command(None, name)):
        options = {option: one for one in command.params for option in one.opts if option.startswith("-")}
        names = [one.name for one in command.params]
        assert len(set(names)) == len(names), f"{command.name}: two options share a name, and so their values"
        for short, long in (("-b", "--bootstrap-server"), ("-o", "--offset"), ("-y", "--yes")):
            assert short not in options or long in options[short].opts, f"{command.name} {short}"
        assert ("--format" in options) == ("--output" in options)
        assert "--format" not in options or options["--format"].hidden


@pytest.mark.parametrize("option", [("--format", "text"), ("--output", "table"), ()])
def test_text_is_the_older_name_of_table(option: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["challenge", "--list", *option])
    assert result.exit_code == 0
    assert not result.stdout.startswith("[")


@pytest.mark.parametrize(("text", "size"), [("5", 5), ("50MB", 50_000_000), ("1.5g", 1_500_000_000), ("2 KB/s", 2000)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--throttle") == size


@pytest.mark.parametrize("text", ["", "0", "fast", "-5", "5XB", "1e9"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(UsageError, match="--throttle"):
        parse_size(text, "--throttle")


def test_sizes_and_durations_for_people() -> None:
    assert [size_text(size) for size in (5, 1500, 2_000_000, 3e12)] == ["5 B", "1.5 KB", "2.0 MB", "3.0 TB"]
    assert [duration_text(seconds) for seconds in (0.2, 59, 61, 7300)] == ["0 s", "59 s", "1 min 1 s", "2 h 1 min"]


def test_progress_has_rate_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    bar = ProgressBar(is_terminal=False, clock_s=lambda: now)
    for now, done in ((0.0, 0), (1.0, 100), (2.5, 250), (3.0, 300), (10.0, 1000)):  # noqa: B007  the clock
        bar.show(done, 1000, "1 of 2 partitions")
    bar.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3, "a line every two seconds"
    assert lines[1].endswith("25%  250 B of 1.0 KB, 100 B/s, 8 s left, 1 of 2 partitions")
    assert lines[2].startswith("[##############################] 100%")


def test_the_bar_of_a_terminal_stays_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(is_terminal=True, clock_s=lambda: 0.0)
    bar.show(1, 2, "x")
    bar.show(2, 2, "x")
    bar.close()
    text = capsys.readouterr().err
    assert text.count("\r") == 2
    assert text.count("\n") == 1


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "agrees"), [("y\n", True), ("yes\n", True), ("\n", False), ("no\n", False), ("", False)]
)
def test_deletions_ask(answer: str, agrees: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    if agrees:
        confirm("deletes everything", yes=False)
    else:
        with pytest.raises(typer.Exit) as left:
            confirm("deletes everything", yes=False)
        assert left.value.exit_code == 1


def test_without_a_terminal_yes_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    with pytest.raises(UsageError, match="this deletes everything; add --yes to confirm"):
        confirm("deletes everything", yes=False)
    confirm("deletes everything", yes=True)


def test_patterns() -> None:
    names = ["orders", "orders-1", "orders.1", "bills", "__consumer_offsets"]
    assert matching([], names) == names
    assert matching(["orders"], names) == ["orders"]
    assert matching(["orders*"], names) == ["orders", "orders-1", "orders.1"]
    assert matching(["bill?", "^orders[.]"], names) == ["orders.1", "bills"]


def test_plans_have_the_format_of_kafkas_tool(tmp_path: Path) -> None:
    plan = {TopicPartition("orders", 1): (3, 1), TopicPartition("orders", 0): (1, 2)}
    text = plan_text(plan)
    assert json.loads(text)["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "replicas": [1, 2],
        "log_dirs": ["any", "any"],
    }
    file = tmp_path / "plan.json"
    file.write_text(text)
    assert read_plan(file) == plan


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a plan of version 1"),
        ('{"version": 2, "partitions": []}', "is not a plan of version 1"),
        ('{"version": 1, "partitions": []}', "has no partitions"),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "entry 0 is not a topic, a partition and replicas"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": ["1"]}]}', "entry 0 is not"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["/x"]}]}',
            "names log directories",
        ),
        ('{"partitions": [%s, %s]}' % (('{"topic": "a", "partition": 0, "replicas": [1]}',) * 2), "has a-0 twice"),
    ],
)
def test_files_that_are_not_plans(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(CommandError, match=complaint):
        read_plan(file)
