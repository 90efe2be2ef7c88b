"""The streaming query of sink_program.py: run until somebody dies at a chosen step of the sink, and then once more."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from process_session import ProcessSession
from waiting import wait_until

from sskafka.pipelines.connector.checkpoint import query_id_of
from sskafka.pipelines.connector.committing import prefix_of
from sskafka.pipelines.connector.planning import ClusterSession
from sskafka.pipelines.connector.transactions import open_transactions
from sskafka.pipelines.shipped.reading import committed_records

HERE = Path(__file__).parent
RECORDS = 3_000
VISIBLE_WITHIN_S = 30
"""A commit is answered when it is decided; brokers write its markers after that."""


class SinkProgram:
    def __init__(
        self,
        bootstrap: str,
        source: str,
        sink: str,
        directory: Path,
        *,
        mode: str = "append",
        speculating_cluster: str = "",
    ) -> None:
        """Runs on a local Spark, or with speculation on a cluster that is named by its master."""
        self._directory = directory
        self._sink = sink
        self._arguments: dict[str, Any] = {
            "bootstrap": bootstrap,
            "source": source,
            "sink": sink,
            "checkpoint": str(directory / "checkpoint"),
            "per_batch": str(RECORDS // 3),
            "speculating_cluster": speculating_cluster,
            "mode": mode,
        }

    @property
    def checkpoint(self) -> Path:
        return Path(self._arguments["checkpoint"])

    def choose_query_id(self, query_id: str) -> None:
        """Spark takes the id of a checkpoint that it finds."""
        self.checkpoint.mkdir(parents=True)
        (self.checkpoint / "metadata").write_text(json.dumps({"id": query_id}))

    def run_until_death(self, step: str, who: str, **options: str) -> int:
        """The exit code of a run in which `who` dies at `step`."""
        died = self._directory / "died"
        code = self._run("killing", dieAt=step, dieWho=who, dieFile=str(died), **options)
        assert died.exists(), self.talk()
        return code

    @property
    def was_handed_over(self) -> bool:
        """Whether a task of the batch in which somebody died has written in the transaction of the driver."""
        return (self._directory / "died").with_suffix(".handed").exists()

    def run(self) -> int:
        return self._run("sskafka")

    def start_until(self, step: str, **options: str) -> ProcessSession:
        """A run that sleeps at `step` until `resume` is called."""
        session = self._start("killing", dieAt=step, dieWho="nobody", dieFile=str(self._slept), **options)
        wait_until(lambda: self._slept.exists() or session.process.poll() is not None, f"it sleeps {step}", 240)
        assert self._slept.exists(), self.talk()
        return session

    @property
    def _slept(self) -> Path:
        return self._directory / "slept"

    def wait_for_replacement(self) -> None:
        """Return when another attempt of the task that sleeps has written its rows."""
        replaced = self._slept.with_suffix(".replaced")
        wait_until(replaced.exists, "another attempt of the task has ended", 120)

    def resume(self) -> None:
        self._slept.with_suffix(".resume").touch()

    def _run(self, format_name: str, **options: str) -> int:
        """Whatever has died: in the end no process is left."""
        session = self._start(format_name, **options)
        try:
            code = session.wait(300)
            session.wait_until_gone()
        finally:
            session.close()
        return code

    def _start(self, format_name: str, **options: str) -> ProcessSession:
        arguments = json.dumps({**self._arguments, "format": format_name, "options": options})
        found = (HERE / "killing", HERE.parent / "integration", os.environ.get("PYTHONPATH", ""))
        path = os.pathsep.join(map(str, found))
        command = [sys.executable, HERE / "sink_program.py", arguments]
        return ProcessSession(command, self._directory / "program.log", {"PYTHONPATH": path})

    def talk(self) -> str:
        return (self._directory / "program.log").read_text()[-3_000:]

    def open_transactions(self, session: ClusterSession) -> list[str]:
        """The transactional ids of the query that have an open transaction."""
        query_id = query_id_of(str(self.checkpoint))
        assert query_id is not None
        return session.run(open_transactions(session.cluster, prefix_of("", query_id)))

    def committed(self) -> list[int]:
        return sorted(map(int, self.committed_values(RECORDS)))

    def committed_values(self, count: int) -> list[bytes]:
        """What readers of committed records see once there are `count`, or whatever they see in the end."""
        bootstrap = self._arguments["bootstrap"]
        deadline = time.monotonic() + VISIBLE_WITHIN_S
        while True:
            found = [value or b"-1" for _, value in committed_records(bootstrap, self._sink)]
            if len(found) >= count or time.monotonic() > deadline:
                return found


def assert_each_once_whoever_dies(program: SinkProgram, step: str, who: str, **options: str) -> None:
    code = program.run_until_death(step, who, **options)
    assert (code == 0) == (who == "worker"), "only a task is run again by Spark itself"
    if code:
        assert program.run() == 0, program.talk()
    assert program.committed() == list(range(RECORDS))
