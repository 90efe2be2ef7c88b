"""`sskafka pipeline run FILE --once` that kills itself and its Java, by SIGKILL, at a chosen step of the JDBC sink.

Arguments: the file, the brokers' address, the batch and the step: `staged`, `inserted` or `committed`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from derby import QUIET_CONF
from dying import die

from sskafka.pipelines.files.pipeline import Trigger, load_pipeline
from sskafka.pipelines.runner.database import Database, Transaction
from sskafka.pipelines.runner.jdbc import JdbcWriter
from sskafka.pipelines.runner.run import RunSettings, run_pipeline


def dying_at(batch: int, step: str) -> None:
    commit, transaction = JdbcWriter._commit, Database.transaction

    def dying_commit(writer: JdbcWriter, *arguments: Any) -> bool:
        if arguments[-1] != batch:
            return commit(writer, *arguments)
        if step == "staged":
            die()
        Database.transaction = dying_transaction  # type: ignore[method-assign]
        done = commit(writer, *arguments)
        die()
        return done

    @contextmanager
    def dying_transaction(database: Database) -> Iterator[Transaction]:
        with transaction(database) as opened:
            yield opened
            if step == "inserted":
                die()

    JdbcWriter._commit = dying_commit  # type: ignore[method-assign]


if __name__ == "__main__":
    file, bootstrap, number, chosen = sys.argv[1:]
    dying_at(int(number), chosen)
    run_pipeline(
        replace(load_pipeline(Path(file)), trigger=Trigger("")), RunSettings(bootstrap, "local[2]", QUIET_CONF)
    )
