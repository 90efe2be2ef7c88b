"""Small micro-batches that the planning process reads itself, so that tasks need no Python worker to read them.

Spark can take the rows of a batch from the planning process, together with the plan, and hand them to the only task of
the batch. It does so for readers of its class SimpleDataSourceStreamReader. Those cannot have several partitions, which
large batches need. Therefore the function of Spark's planning process that sends the plan is replaced here: it sends
the rows that the reader has read ahead, if there are any. A task that does not find the rows reads them from the
brokers.

    latestOffset ──> fetch is sent ──> Spark writes its offset log ──> partitions ──> rows are sent with the plan
"""

import json
import logging
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from sskafka.client.errors import ClientError
from sskafka.model.errors import KafkaError
from sskafka.pipelines.connector.errors import ConnectorError
from sskafka.pipelines.connector.fetching import Reading
from sskafka.pipelines.connector.offsets import OffsetRange, OffsetsJson
from sskafka.pipelines.connector.options import SourceOptions

if TYPE_CHECKING:
    from sskafka.pipelines.connector.planning import ClusterSession

RECORDS_MAX = 500
"""Java stores these rows one by one. Up to about this many, that is faster than another Python worker."""
BYTES_MAX = 1 << 20
PLANNING = "pyspark.sql.streaming.python_streaming_source_runner"

logger = logging.getLogger(__name__)


class ReadAhead:
    """The rows of one planned micro-batch; the request is in flight when this object exists."""

    def __init__(
        self,
        session: "ClusterSession",
        options: SourceOptions,
        ranges: list[OffsetRange],
        start: OffsetsJson,
        end: OffsetsJson,
    ) -> None:
        self.ranges = ranges
        self._session = session
        self._reading = Reading(session.cluster, options, ranges)
        self._offsets = start, end
        session.run(self._reading.send_next())

    def is_between(self, start: OffsetsJson, end: OffsetsJson) -> bool:
        return self._offsets == (start, end)

    def rows(self) -> list[pa.RecordBatch] | None:
        """Return the rows; None if there are too many bytes or the brokers return an error: then tasks read them."""
        found: list[pa.RecordBatch] = []
        try:
            while not self._reading.is_done:
                found += self._session.run(self._reading.received_rows())
                if sum(batch.nbytes for batch in found) > BYTES_MAX:
                    return None
        except (ClientError, KafkaError, ConnectorError) as error:
            logger.info("the tasks read the micro-batch themselves: %s", error)
            return None
        finally:
            self.close()
        return found

    def close(self) -> None:
        self._session.run(self._reading.close())


def is_small(tasks: Sequence[Sequence[OffsetRange]]) -> bool:
    """Return whether the planning process should read the records: there is one task, and it has few records."""
    return len(tasks) == 1 and sum(part.size for part in tasks[0]) <= RECORDS_MAX


def install() -> bool:
    """Make Spark's planning process send rows that were read ahead; return whether this process is one and does so."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", "")
    if name != PLANNING or not all(hasattr(main, used) for used in _USED):
        return False
    main.partitions_func = _send_partitions  # type: ignore[union-attr]
    return True


_USED = (
    "partitions_func",
    "send_batch_func",
    "pickleSer",
    "utf8_deserializer",
    "write_int",
    "PREFETCHED_RECORDS_NOT_FOUND",
)


def _send_partitions(
    reader: Any, data_source: Any, schema: Any, max_arrow_batch_size: int, infile: IO[bytes], outfile: IO[bytes]
) -> None:
    """Send the partitions of a micro-batch and the rows that the reader has read ahead."""
    spark: Any = sys.modules["__main__"]
    start, end = (json.loads(spark.utf8_deserializer.loads(infile)) for _ in range(2))
    partitions = reader.partitions(start, end)
    rows = reader.take_rows(start, end) if len(partitions) == 1 else None
    spark.write_int(len(partitions), outfile)
    for partition in partitions:
        spark.pickleSer._write_with_length(partition, outfile)
    if rows is None:
        spark.write_int(spark.PREFETCHED_RECORDS_NOT_FOUND, outfile)
    else:
        spark.send_batch_func(iter(rows), outfile, schema, max_arrow_batch_size, data_source)
