"""A backfill that kills itself when a sink has all rows and before the checkpoint says so.

Arguments: the file, the brokers' address, both ends of the range, the sink.
"""

import sys
from pathlib import Path

from derby import QUIET_CONF
from dying import die

from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.backfill import run_backfill
from sskafka.pipelines.runner.backfill_range import parse_range
from sskafka.pipelines.runner.backfill_state import BackfillState, QueryDone
from sskafka.pipelines.runner.run import RunSettings


def dying_at(sink: str) -> None:
    finish_query = BackfillState.finish_query

    def dying(state: BackfillState, query: str, done: QueryDone) -> None:
        if query == sink:
            die()
        finish_query(state, query, done)

    BackfillState.finish_query = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    file, bootstrap, start, end, chosen = sys.argv[1:]
    dying_at(chosen)
    run_backfill(load_pipeline(Path(file)), parse_range(start, end), RunSettings(bootstrap, "local[2]", QUIET_CONF))
