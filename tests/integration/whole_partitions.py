"""Reading a partition to its end, also where compaction left gaps and empty batches."""

from wire_connection import Connection, records_in

from sskafka.records.batch import HEADER_BYTES, read_header
from sskafka.records.record import Record


def read_from(connection: Connection, topic: str, offset: int) -> list[Record]:
    found: list[Record] = []
    while True:
        data = connection.fetch(topic, offset)
        records = [record for record in records_in(data) if record.offset >= offset]
        following = _end_of(data.records or b"", offset)
        if following == offset:
            return found
        found += records
        offset = following


def _end_of(data: bytes, offset: int) -> int:
    """Behind the last whole batch, which may be an empty one."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        header = read_header(data, position)
        if header.size_bytes > len(data) - position:
            break
        offset = max(offset, header.next_offset)
        position += header.size_bytes
    return offset


def state_of(records: list[Record]) -> dict[bytes, bytes]:
    """The last value of each key, if it was not deleted."""
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets)), "every offset once, in order"
    state = {record.key: record.value for record in records}
    return {key: value for key, value in state.items() if key is not None and value is not None}
