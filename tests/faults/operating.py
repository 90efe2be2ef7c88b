"""An operator beside the pipeline: writes its input, starts its runs, and starts one again whenever one has ended.

How far the queries have come is read from their checkpoints, so it is known whoever is dead.
"""

import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from joining import FILE, PARTITIONS, Order, Pair, Payment, Shop, Window, answer, orders_of, payments_of
from process_session import ProcessSession
from spark_fixtures import append

from sskafka.client.admin import Admin, NewTopic
from sskafka.client.config import ConnectionConfig
from sskafka.client.errors import ClientError
from sskafka.model.errors import KafkaError
from sskafka.pipelines.connector.checkpoint import query_id_of
from sskafka.pipelines.connector.committing import prefix_of
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.runner.recovery import checkpoint_of, transactional_prefix
from sskafka.pipelines.shipped.reading import committed_records

SSKAFKA = str(Path(sys.executable).with_name("sskafka"))
MASTER = "local[2,4]"
"""A task may fail three times before its query does."""
NAME = "shop"
QUERIES = ("windows", "joined")
TICK_EVERY_S = 0.4
WRITE_AGAIN_AFTER_S = 1.0


class Ended(NamedTuple):
    """A run that was not there any more when the operator looked."""

    at_s: float
    code: int
    last_word: str


class Operator:
    def __init__(self, directory: Path, bootstrap: str) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.file = directory / "pipeline.yaml"
        self.file.write_text(FILE.format(name=NAME))
        self.ended: list[Ended] = []
        self.runs: list[ProcessSession] = []
        self._began = time.monotonic()

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.file)

    @property
    def run(self) -> ProcessSession:
        """The newest one."""
        return self.runs[-1]

    def start(self) -> ProcessSession:
        command = [SSKAFKA, "pipeline", "run", str(self.file), "-b", self.bootstrap, "--master", MASTER]
        environment = {"SSKAFKA_SPARK_LOG": str(self.directory / f"run-{len(self.runs)}-spark.log")}
        self.runs.append(ProcessSession(command, self.directory / f"run-{len(self.runs)}.log", environment))
        return self.run

    def look(self) -> None:
        """Start the pipeline again if its newest run has ended."""
        code = self.run.process.poll()
        if code is not None:
            self.note_end(self.run)
            self.start()

    def note_end(self, run: ProcessSession) -> None:
        lines = run.talk().strip().splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        last_word = (errors or lines or [""])[-1]
        self.ended.append(Ended(time.monotonic() - self._began, run.process.wait(), last_word))

    def close(self) -> None:
        for run in self.runs:
            run.close()

    # -- how far the queries have come

    def batches_done(self) -> list[int]:
        """The newest batch that is done, by query; -1 before the first."""
        return [_newest(Path(checkpoint_of(self.pipeline, query)) / "commits") for query in QUERIES]

    def records_read(self, query: str) -> int:
        """Of both topics, in batches that are done."""
        checkpoint = Path(checkpoint_of(self.pipeline, query))
        done = _newest(checkpoint / "commits")
        if done < 0:
            return 0
        sources = (checkpoint / "offsets" / str(done)).read_text().splitlines()[2:]
        return sum(sum(json.loads(line)[topic].values()) for line, topic in zip(sources, _inputs(), strict=True))

    def driver_id(self, query: str) -> str | None:
        """The transactional id under which a query decides; None before it has run."""
        query_id = query_id_of(checkpoint_of(self.pipeline, query))
        return query_id and f"{prefix_of(transactional_prefix(self.pipeline, query), query_id)}-driver"


def _newest(directory: Path) -> int:
    try:
        return max((int(file.name) for file in directory.iterdir() if file.name.isdecimal()), default=-1)
    except FileNotFoundError:
        return -1


def _inputs() -> tuple[str, str]:
    return f"{NAME}-orders", f"{NAME}-payments"


def output(query: str) -> str:
    return f"{NAME}-{query}"


def create_inputs(bootstrap: str) -> None:
    with ClusterSession(bootstrap, ConnectionConfig()) as session:
        topics = [NewTopic(topic, PARTITIONS, configs={"retention.ms": "-1"}) for topic in _inputs()]
        for topic, outcome in session.run(Admin(session.cluster).create_topics(topics)).items():
            assert not isinstance(outcome, KafkaError), f"{topic}: {outcome}"


class InputWriter:
    """Writes tick after tick from a thread of its own, whatever happens to the brokers, until it is stopped.

    A tick that was perhaps written is written again: what counts as input is what is in the topics in the end."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self._bootstrap = bootstrap
        self._shop = Shop(random.Random(seed))
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="input")
        self._thread.start()

    @property
    def ticks(self) -> int:
        return self._shop.ticks

    def stop(self) -> None:
        """Returns when the tick under way is written."""
        self._end.set()
        self._thread.join()

    def close_windows(self) -> None:
        self._write(*self._shop.closing())

    def _work(self) -> None:
        while not self._end.wait(TICK_EVERY_S):
            self._write(*self._shop.tick())

    def _write(self, orders: Sequence[Order], payments: Sequence[Payment]) -> None:
        for topic, rows in zip(_inputs(), (orders, payments), strict=True):
            for partition in range(PARTITIONS):
                chosen = rows[partition::PARTITIONS]
                while chosen and not self._is_written(topic, partition, chosen):
                    time.sleep(WRITE_AGAIN_AFTER_S)

    def _is_written(self, topic: str, partition: int, rows: Sequence[Order | Payment]) -> bool:
        try:
            with ClusterSession(self._bootstrap, ConnectionConfig()) as session:
                append(session, topic, [row.text.encode() for row in rows], partition, rows[0].at_ms)
        except (ClientError, KafkaError, OSError):
            return False
        return True


# -- what is in the topics


def input_count(bootstrap: str) -> int:
    return sum(len(_texts(bootstrap, topic)) for topic in _inputs())


def expected(bootstrap: str) -> tuple[Counter[Pair], Counter[Window]]:
    orders, payments = (_texts(bootstrap, topic) for topic in _inputs())
    return answer(orders_of(orders), payments_of(payments))


def found_pairs(bootstrap: str) -> Counter[Pair]:
    rows = map(json.loads, _texts(bootstrap, output("joined")))
    return Counter(Pair(row["id"], row["payment"], row["country"], row["amount"]) for row in rows)


def found_windows(bootstrap: str) -> Counter[Window]:
    rows = map(json.loads, _texts(bootstrap, output("windows")))
    return Counter(Window(row["start"], row["country"], row["pairs"], row["total"]) for row in rows)


def _texts(bootstrap: str, topic: str) -> list[str]:
    return [value.decode() for _, value in committed_records(bootstrap, topic) if value is not None]
