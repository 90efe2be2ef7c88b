"""Binary columns of Arrow as numpy arrays: the bytes of all values, and the bounds of each value."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]


def bounds_and_bytes(column: pa.BinaryArray) -> tuple[Numbers, Bytes]:
    """Return the bounds of the values and their bytes; value i is between bounds i and i + 1. A null has no bytes."""
    _, offsets, content = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return bounds, np.frombuffer(content or b"", dtype=np.uint8)


def binary_or_nulls(rows: pa.RecordBatch, name: str) -> pa.BinaryArray:
    """Return the column as bytes; a column of nulls if the rows do not have it."""
    return rows.column(name).cast(pa.binary()) if name in rows.schema.names else pa.nulls(rows.num_rows, pa.binary())


def binary_column(matrix: Bytes, present: npt.NDArray[np.bool_]) -> pa.BinaryArray:
    """Return a column with one value for each row of the matrix, made of the bytes that are marked as present."""
    bounds = np.zeros(len(matrix) + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=bounds[1:])
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(matrix[present])]
    return pa.Array.from_buffers(pa.binary(), len(matrix), buffers)
