"""Frames on the private socket: the length in four bytes, then JSON.

    {"id": 7, "ask": "vote", "with": {"epoch": 3, ...}}      child -> broker
    {"id": 7, "part": [...]}                                 broker -> child, any number of them, for long answers
    {"id": 7, "answer": ...}  or  {"id": 7, "error": "..."}  broker -> child, once

Answers come in any order.
"""

import asyncio
import json
from typing import Any

LENGTH_BYTES = 4


def encode_frame(value: Any) -> bytes:
    data = json.dumps(value, separators=(",", ":")).encode()
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """None when the other side has gone."""
    try:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        return json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
