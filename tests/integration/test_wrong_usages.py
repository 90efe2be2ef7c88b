"""Wrong usages: each is told what is wrong and what to try, with the right exit code, and never gets a traceback.

The table is wrong_usages.txt. The commands run in this process, against one broker, so that all of them take seconds.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import sskafka
from sskafka.cli.commands import app

TABLE = Path(__file__).with_name("wrong_usages.txt")
LIBRARY_WORDS = ("Input should be", "Value error", "pydantic", "Traceback", "validation error")
"""How the libraries behind the commands would put it."""


class Usage(NamedTuple):
    line: str
    exit_code: int
    message: str
    hint: str


def usages() -> list[Usage]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines if line and not line.startswith("#")]
    return [Usage(line, int(code), message, "".join(hint)) for line, code, message, *hint in rows]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with sskafka.Broker() as broker:
        broker.create_topic("orders", 2)
        broker.produce("orders", "3 apples")
        with sskafka.Consumer(broker.bootstrap_servers, group_id="billing") as consumer:
            consumer.subscribe("orders")
            assert consumer.poll(1, timeout_ms=10_000)
            consumer.commit()
        yield broker.bootstrap_servers


@pytest.mark.parametrize("usage", usages(), ids=lambda usage: usage.line)
def test_wrong_usage_gets_a_message_and_a_hint(bootstrap: str, usage: Usage) -> None:
    result = CliRunner().invoke(app, shlex.split(usage.line), env={"SSKAFKA_BOOTSTRAP": bootstrap})
    assert result.exit_code == usage.exit_code, result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    assert usage.message in result.stderr
    assert usage.hint in result.stderr
    assert not [words for words in LIBRARY_WORDS if words in result.stderr]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("topic list 'bills-*'", "none of 1 topics matches"),
        ("topic consume orders -g billing -e", "no new records were found; `sskafka group describe billing`"),
        ("topic consume orders -o end -e", "no records were found; `sskafka topic describe orders -p`"),
        ("topic describe --under-replicated --at-min-isr", "no partition is under-replicated or at min ISR"),
        ("topic describe --unavailable", "no partition is without a leader"),
        ("topic delete 'ord*' --dry-run", "topic orders would be deleted"),
        ("group list 'zz*'", "none of 1 groups matches"),
        ("group delete 'bill*' --dry-run", "billing: would be deleted"),
        ("topic rebalance --cancel", "no partitions are being moved"),
        ("user list", "there are no users"),
        ("quota list", "there are no such quotas"),
        ("transaction list", "there are no such transactional ids"),
        ("cluster reassignments", "no partition is being reassigned"),
    ],
)
def test_success_without_a_result_is_a_sentence(bootstrap: str, line: str, sentence: str) -> None:
    result = CliRunner().invoke(app, shlex.split(line), env={"SSKAFKA_BOOTSTRAP": bootstrap})
    assert result.exit_code == 0, result.stderr
    assert sentence in result.stderr
    assert len(result.stdout.splitlines()) <= 1, "the columns of a table alone"


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every command that has no subcommands."""
    if not hasattr(command, "list_commands"):
        yield " ".join(path)
        return
    context = command.make_context("sskafka", [], resilient_parsing=True)
    for name in command.list_commands(context):
        yield from commands(command.get_command(context, name), (*path, name))


def test_every_command_has_a_row() -> None:
    lines = [f"{usage.line} " for usage in usages()]
    found = list(commands(get_command(app)))
    assert len(found) > 75
    assert [name for name in found if not any(line.startswith(f"{name} ") for line in lines)] == []


def test_the_table_is_long() -> None:
    assert len(usages()) >= 100
    assert len({usage.line for usage in usages()}) == len(usages())
