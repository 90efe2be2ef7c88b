"""`sskafka pipeline recover` on a broker: what it shows, what it only would do, and what it does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sskafka import Broker
from sskafka.cli.commands import app
from sskafka.client.admin import Admin
from sskafka.client.config import ConnectionConfig
from sskafka.client.transactions import add_partitions
from sskafka.model.ids import TopicPartition
from sskafka.pipelines.connector.commit_protocol import Attempt
from sskafka.pipelines.connector.committing import Committer, cluster_committer, prefix_of
from sskafka.pipelines.connector.decision import Owner
from sskafka.pipelines.connector.errors import CheckpointError
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import begin, transactional_id
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.recovery import checkpoint_of, exact_sinks

FILE = "name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{topic: {topic: out}}]\ncheckpoint: state\n"
QUERY = "0b3d2d5e-query"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker({"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "good.yaml"
    file.write_text(FILE)
    return file


def with_checkpoint(file: Path, query_id: str) -> None:
    checkpoint = Path(checkpoint_of(load_pipeline(file), "topic"))
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": query_id}))


def invoke(file: Path, bootstrap: str, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", "recover", str(file), "-b", bootstrap, *arguments])
    return result.exit_code, " ".join(result.output.split())


class Driver:
    """Runs of the pipeline's query, without Spark."""

    def __init__(self, session: ClusterSession, file: Path, bootstrap: str) -> None:
        self._session = session
        self._file = file
        self._bootstrap = bootstrap

    def committer(self, run: str) -> Committer:
        (sink,) = exact_sinks(load_pipeline(self._file), self._bootstrap)
        return cluster_committer(self._session, sink.options, sink.query_id, Owner(run))

    def leave_open(self, epoch: int) -> None:
        """A task of this epoch has begun a transaction, and nobody ends it."""
        (sink,) = exact_sinks(load_pipeline(self._file), self._bootstrap)
        name = transactional_id(prefix_of(sink.options.transactional_id_prefix, sink.query_id), epoch, "0a", 0)
        task = self._session.run(begin(self._session.cluster, name, 60_000))
        control = TopicPartition(sink.options.control_topic, 0)
        self._session.run(add_partitions(self._session.cluster, task, [control]))


@pytest.fixture
def driver(file: Path, bootstrap: str) -> Iterator[Driver]:
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        yield Driver(session, file, bootstrap)


def test_a_pipeline_that_never_ran_has_nothing_to_recover(file: Path, bootstrap: str) -> None:
    code, said = invoke(file, bootstrap)
    assert code == 1
    assert "has no checkpoint" in said


def test_looking_creates_nothing(file: Path, bootstrap: str) -> None:
    with_checkpoint(file, "looked-at")
    code, said = invoke(file, bootstrap)
    assert code == 0
    assert "the control topic has no record of this query" in said
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        assert "sskafka-spark-commits" not in {view.name for view in session.run(Admin(session.cluster).list_topics())}


def test_mistakes_are_told(file: Path, bootstrap: str) -> None:
    with_checkpoint(file, "mistaken")
    assert "use written or missing" in invoke(file, bootstrap, "--declare", "perhaps")[1]
    assert "give both" in invoke(file, bootstrap, "--batch", "3")[1]
    code, said = invoke(file, bootstrap, "--declare", "missing")
    assert code == 1
    assert "name it with --batch" in said


def test_a_lost_control_topic_is_declared(file: Path, bootstrap: str, driver: Driver) -> None:
    with_checkpoint(file, QUERY)
    declare = ("--declare", "missing", "--batch", "7")
    assert "would declare batch 7 of topic missing" in invoke(file, bootstrap, *declare)[1]
    with pytest.raises(CheckpointError, match="knows of no batch before"):
        driver.committer("first").commit(Attempt(7))
    assert invoke(file, bootstrap, *declare, "--execute")[0] == 0
    driver.committer("second").commit(Attempt(7))
    code, said = invoke(file, bootstrap, "--format", "json")
    assert code == 0
    assert '"batch": 6' in said  # a batch without rows is not recorded


def test_a_checkpoint_that_was_moved(file: Path, bootstrap: str, driver: Driver, tmp_path: Path) -> None:
    with_checkpoint(file, "moved")
    driver.committer("first").claim()
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    file.write_text(FILE.replace("state", "elsewhere"))
    with pytest.raises(CheckpointError, match="one is a copy of the other"):
        driver.committer("second").claim()
    assert "would record that the checkpoint" in invoke(file, bootstrap, "--moved")[1]
    with pytest.raises(CheckpointError, match="one is a copy of the other"):
        driver.committer("second").claim()
    assert invoke(file, bootstrap, "--moved", "--execute")[0] == 0
    driver.committer("second").claim()


def test_recovery_of_a_moved_checkpoint_settles_the_query_too(
    file: Path, bootstrap: str, driver: Driver, tmp_path: Path
) -> None:
    with_checkpoint(file, "moved-amid-a-batch")
    driver.leave_open(driver.committer("first").claim())
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    file.write_text(FILE.replace("state", "elsewhere"))
    code, said = invoke(file, bootstrap, "--moved", "--execute")
    assert code == 0
    assert "abort 1 open transactions" in said
    assert "there is nothing to settle" in invoke(file, bootstrap)[1]
