"""Check records that a client writes to an internal topic.

Kafka lets the client id `__admin_client` write there and does not check the records. Any client can claim that id, so
SSKafka accepts only records that a coordinator could have written.
"""

from collections.abc import Callable

from sskafka.groups import log_records as group_records
from sskafka.model.coordination import StateRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.records.batch import CorruptBatchError, crc_matches, read_header
from sskafka.records.record import Record, decode_records
from sskafka.transactions import log_records as transaction_records

RECORDS_MAX = 1000
DECOMPRESSED_BYTES_MAX = 1024 * 1024
"""All records are decoded on the event loop, so there must not be many."""

_DECODERS: dict[str, Callable[[StateRecord], object | None]] = {
    "__consumer_offsets": group_records.decode_record,
    "__transaction_state": transaction_records.decode_record,
}


def check_internal_records(topic: str, batch: memoryview) -> None:
    """Raise KafkaError unless a coordinator can read every record of the batch."""
    decode = _DECODERS.get(topic)
    if decode is None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"no client may write to {topic}")
    header = read_header(batch)
    if not crc_matches(batch, header):
        raise CorruptBatchError("the batch does not match its checksum")
    if header.record_count > RECORDS_MAX:
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{header.record_count} records in a batch for {topic}")
    for record in decode_records(batch, header, max_bytes=DECOMPRESSED_BYTES_MAX):
        if not _is_readable(decode, record):
            problem = f"record {record.offset} is not one that the coordinator of {topic} writes"
            raise KafkaError(ErrorCode.INVALID_RECORD, problem)


def _is_readable(decode: Callable[[StateRecord], object | None], record: Record) -> bool:
    if record.key is None:
        return False
    try:
        return decode(StateRecord(record.key, record.value)) is not None
    except Exception:  # the bytes of a client can cause any error
        return False
