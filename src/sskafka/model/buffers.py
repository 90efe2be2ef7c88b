"""What counts as bytes: the codec, the log and the network take any of these."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
