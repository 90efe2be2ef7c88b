"""`sskafka pipeline check` and `generate` without Spark: what they say, and their exit codes."""

import pytest
from typer.testing import CliRunner

from sskafka.cli.commands import app
from sskafka.client.config import ConnectionConfig
from sskafka.pipelines.shipped import selfcheck, shipped_names
from sskafka.pipelines.shipped.exercise import Message


def invoke(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", *words])
    return result.exit_code, result.output


def test_a_wrong_answer_is_shown_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {name: ["missing: 1, a"] if name == "cdc" else [] for name in shipped_names()}
    asked: list[selfcheck.CheckSettings] = []

    def check(name: str, settings: selfcheck.CheckSettings, tell: object) -> list[str]:
        asked.append(settings)
        return answers[name]

    monkeypatch.setattr(selfcheck, "check", check)
    code, said = invoke("check", "-n", "50", "--master", "local[1]", "-b", "there:9")
    assert code == 1
    assert "missing: 1, a\ncdc: the result is wrong" in said
    assert "sessions: every row is as expected" in said
    assert "wrong result of cdc" in said
    assert {(one.run.bootstrap, one.run.master, one.records) for one in asked} == {("there:9", "local[1]", 50)}
    assert invoke("check", "latest")[0] == 0
    assert invoke("run", "cdc", "--check")[0] == 1


def test_made_up_records_go_to_the_topics_of_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, int] = {}

    async def produce(
        bootstrap: str, topics: dict[str, str], messages: dict[str, list[Message]], config: ConnectionConfig
    ) -> None:
        assert config.security_protocol == "SSL"
        written.update({topics[table]: len(own) for table, own in messages.items()})

    monkeypatch.setattr(selfcheck, "produce", produce)
    options = ("--topic", "clicks=mine", "-X", "security.protocol=SSL")
    code, said = invoke("generate", "sessions", "-n", "100", *options)
    assert code == 0, said
    assert written == {"mine": 101}
    assert "wrote 101 records to mine" in said


@pytest.mark.parametrize("command", ["check", "generate"])
def test_a_pipeline_that_is_not_shipped(command: str) -> None:
    code, said = invoke(command, "nothing")
    assert code == 1
    assert "there is no bundled pipeline nothing" in said
    assert "one of archive, audit, cdc" in said


@pytest.mark.parametrize("command", ["run", "plan", "generate"])
def test_a_table_that_is_not_there(command: str) -> None:
    code, said = invoke(command, "sessions", "--topic", "click=mine")
    assert code == 2
    assert "no table 'click'; it has clicks" in said
