"""Write micro-batches to a topic through `foreachBatch`: exactly once, also in output mode update.

Spark refuses `outputMode("update")` for sinks that are written in Python ("does not support Update mode"), but not for
`foreachBatch`. The batches use the same commit protocol as those of the streaming sink, with the id of the query's
checkpoint and the number of the batch.
"""

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sskafka.pipelines.connector.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHECKPOINT = "checkpointLocation"


class TopicBatches:
    """The function that foreachBatch calls:

        counts.writeStream.outputMode("update").option("checkpointLocation", location).foreachBatch(
            TopicBatches({"kafka.bootstrap.servers": ..., "topic": ..., "checkpointLocation": location})
        )

    The options are those of the sink; `checkpointLocation` must be that of the query."""

    format_name = "sskafka"

    def __init__(self, options: Mapping[str, str]) -> None:
        if not options.get(CHECKPOINT):
            raise OptionError(CHECKPOINT, "is missing: batches are counted by the id of the query's checkpoint")
        self._options = dict(options)
        self._query: tuple[str, str] | None = None
        """The id of the query, and that of its run. None before the first batch of a run."""
        self._last = -1

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        """Write a batch. A query that is started again with the same object is another run of it.

        A run ends with a batch that fails, and a batch that is repeated begins one: the protocol refuses a run that
        has given up a batch."""
        if self._query is None or batch <= self._last:
            self._query = query_id(rows, self._options[CHECKPOINT]), uuid.uuid4().hex
        self._last = batch
        identity = {"queryId": self._query[0], "queryRun": self._query[1], "batchId": str(batch)}
        try:
            rows.write.format(self.format_name).mode("append").options(**self._options, **identity).save()
        except BaseException:
            self._query = None
            raise


def query_id(rows: "DataFrame", checkpoint: str) -> str:
    """Return the id of the query with this checkpoint; Spark writes it there before the first batch."""
    (line,) = rows.sparkSession.read.text(f"{checkpoint}/metadata").collect()
    return str(json.loads(line[0])["id"])
