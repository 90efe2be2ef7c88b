"""The last committed value of a key, also beyond the first open transaction of a partition. Pure: no I/O.

Brokers return records to read_committed readers only up to the first open transaction:

    A=1 | B=7 | A=2 | commit A          B is still open
        ^ last stable offset

A=2 is committed, but brokers do not return it before B has ended. A read_uncommitted reader receives everything,
markers included. The marker that follows the records of a producer tells whether they are committed. The log cleaner
leaves this range alone, so no marker is missing.
"""

from sskafka.pipelines.connector.decode import DataBatch, to_arrow
from sskafka.pipelines.connector.offsets import OffsetRange
from sskafka.records.control import ControlType, read_control_type


class LastCommitted:
    """Takes the batches of a partition in the order of their offsets."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._undecided: dict[int, bytes] = {}
        self.value: bytes | None = None

    @property
    def is_undecided(self) -> bool:
        """Whether a transaction that has written the key is open."""
        return bool(self._undecided)

    def take(self, batch: DataBatch, wanted: OffsetRange) -> None:
        rows = to_arrow([batch], wanted)
        producer_id = batch.header.producer_id
        if batch.header.is_control:
            written = self._undecided.pop(producer_id, None)
            if written is not None and read_control_type(rows.column("key")[0].as_py()) == ControlType.COMMIT:
                self.value = written
            return
        for key, value in zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True):
            if key != self._key or value is None:
                continue
            if batch.header.is_transactional:
                self._undecided[producer_id] = value
            else:
                self.value = value
