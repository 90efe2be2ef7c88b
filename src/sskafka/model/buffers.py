"""The types of buffers that the codec, the log and the network accept as bytes."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
