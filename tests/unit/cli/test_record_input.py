import asyncio
import os
import threading

import pytest

from sskafka.cli.record_input import read_pieces


def pieces(*chunks: bytes, end: bytes = b"\n") -> list[bytes]:
    async def collect() -> list[bytes]:
        return [piece async for piece in read_pieces(reading, end)]

    def write() -> None:
        for chunk in chunks:
            os.write(writing, chunk)
        os.close(writing)

    reading, writing = os.pipe()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        return asyncio.run(collect())
    finally:
        writer.join()
        os.close(reading)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\nc\n"], [b"a", b"b", b"c"]),
        ([b"a\nb"], [b"a", b"b"]),
        ([b"a", b"b\n\n", b"c\n"], [b"ab", b"", b"c"]),
        ([], []),
    ],
)
def test_lines(chunks: list[bytes], expected: list[bytes]) -> None:
    assert pieces(*chunks) == expected


def test_ends_of_several_bytes_may_be_split_between_reads() -> None:
    assert pieces(b"one-", b"-two--three", end=b"--") == [b"one", b"two", b"three"]


def test_interrupting_does_not_wait_for_input() -> None:
    reading, writing = os.pipe()

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            async for _ in read_pieces(reading, b"\n"):
                pass

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    os.close(writing)
    for thread in threading.enumerate():
        if thread.name == "read-input":
            thread.join()
    os.close(reading)
