"""Assignment of rows to partitions, for all rows of an Arrow batch at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sskafka.client.errors import UnknownTopicError
from sskafka.pipelines.connector.binary_columns import Numbers, binary_or_nulls, bounds_and_bytes

_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)


def partition_numbers(rows: pa.RecordBatch, topic: str, partition_count: int, keyless: int) -> Numbers:
    """Return for each row the partition that it names, else the partition of its key, else `keyless`."""
    numbers = np.full(rows.num_rows, keyless % partition_count, dtype=np.int64)
    keys = binary_or_nulls(rows, "key")
    if keys.null_count < len(keys):
        numbers = np.where(_is_valid(keys), partitions_of_keys(keys, partition_count), numbers)
    if "partition" in rows.schema.names:
        named = rows.column("partition")
        numbers = np.where(_is_valid(named), named.fill_null(0).to_numpy(), numbers)
    wrong = numbers[(numbers < 0) | (numbers >= partition_count)]
    if wrong.size:
        raise UnknownTopicError(f"a row names partition {wrong[0]}, but {topic!r} has {partition_count}")
    return numbers


def _is_valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def partitions_of_keys(keys: pa.BinaryArray, partition_count: int) -> Numbers:
    """Return the partition of each key by Kafka's murmur2; keys of equal length are hashed together.

    Null counts as empty."""
    bounds, content = bounds_and_bytes(keys)
    starts, lengths = bounds[:-1], np.diff(bounds)
    hashes = np.empty(len(keys), dtype=np.uint32)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        matrix = content[starts[places][:, np.newaxis] + np.arange(length)]
        hashes[places] = _murmur2_of_equal_length(matrix)
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % partition_count


def _murmur2_of_equal_length(matrix: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Return the murmur2 hash of each row of bytes, as `records.partitioner.murmur2` does."""
    count, length = matrix.shape
    hashed = np.full(count, (_SEED ^ length) & 0xFFFFFFFF, dtype=np.uint32)
    whole = length & ~3
    words = np.ascontiguousarray(matrix[:, :whole]).view("<u4")
    for column in range(whole // 4):
        mixed = words[:, column] * _MULTIPLIER
        mixed = (mixed ^ (mixed >> np.uint32(24))) * _MULTIPLIER
        hashed = (hashed * _MULTIPLIER) ^ mixed
    if length > whole:
        tail = np.zeros((count, 4), dtype=np.uint8)
        tail[:, : length - whole] = matrix[:, whole:]
        hashed = (hashed ^ tail.view("<u4")[:, 0]) * _MULTIPLIER
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _MULTIPLIER
    return hashed ^ (hashed >> np.uint32(15))
