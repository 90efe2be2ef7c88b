"""Arrow's binary columns as numpy sees them: all bytes in a row, and where each value begins and ends."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]


def bounds_and_bytes(column: pa.BinaryArray) -> tuple[Numbers, Bytes]:
    """Value i lies between bounds i and i + 1; a null takes no place."""
    _, offsets, content = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return bounds, np.frombuffer(content or b"", dtype=np.uint8)


def binary_or_nulls(rows: pa.RecordBatch, name: str) -> pa.BinaryArray:
    """The column of that name, text or bytes; nulls where there is none."""
    return rows.column(name).cast(pa.binary()) if name in rows.schema.names else pa.nulls(rows.num_rows, pa.binary())


def binary_column(matrix: Bytes, present: npt.NDArray[np.bool_]) -> pa.BinaryArray:
    """A value a row: those of its bytes that are present."""
    bounds = np.zeros(len(matrix) + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=bounds[1:])
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(matrix[present])]
    return pa.Array.from_buffers(pa.binary(), len(matrix), buffers)
