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
    """What foreachBatch calls:

        counts.writeStream.outputMode("update").option("checkpointLocation", place).foreachBatch(
            TopicBatches({"kafka.bootstrap.servers": ..., "topic": ..., "checkpointLocation": place})
        )

    The options are those of the sink; `checkpointLocation` must be that of the query."""

    format_name = "sskafka"

    def __init__(self, options: Mapping[str, str]) -> None:
        if not options.get(CHECKPOINT):
            raise OptionError(CHECKPOINT, "is missing: batches are counted by the id of the query's checkpoint")
        self._options = dict(options)
        self._run = uuid.uuid4().hex
        self._query_id = ""

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        self._query_id = self._query_id or query_id(rows, self._options[CHECKPOINT])
        identity = {"queryId": self._query_id, "queryRun": self._run, "batchId": str(batch)}
        rows.write.format(self.format_name).mode("append").options(**self._options, **identity).save()


def query_id(rows: "DataFrame", checkpoint: str) -> str:
    """Return the id of the query with this checkpoint; Spark writes it there before the first batch."""
    (line,) = rows.sparkSession.read.text(f"{checkpoint}/metadata").collect()
    return str(json.loads(line[0])["id"])
