"""The last records of a log, for a reader that asks again and again while its broker appends.

Segments are read forwards, but a page shows the newest records first. So the places of batches are remembered while the
files are walked once; later pages begin near what they show.

    00...0.log  |--.--.--.--|    00...9.log  |--.--.--.--.-->        "." a remembered place, every PLACE_EVERY batches

A broker may truncate the end of its metadata log and write other batches there. A remembered place therefore counts
only while a valid batch with the same offset begins there; otherwise the places of that segment are forgotten.
"""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sskafka.records.batch import BatchHeader, CorruptBatchError
from sskafka.records.record import Record, decode_records
from sskafka.storage.partition_files import PartitionFiles
from sskafka.storage.segment import log_path
from sskafka.storage.verification.walk import SegmentReader, StoredBatch

PLACE_EVERY = 64


class TailRecord(NamedTuple):
    record: Record
    header: BatchHeader


class _Place(NamedTuple):
    offset: int
    position: int


class RecordTail:
    """The log in one directory. Not for several threads at once."""

    def __init__(self, files: PartitionFiles, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._places: dict[int, list[_Place]] = {}

    def newest_before(self, offset: int) -> Iterator[TailRecord]:
        """Yield the records below `offset`, newest first, as far back as the log reaches."""
        bases = [segment.base_offset for segment in self._files.segments(self._directory)]
        self._places = {base: places for base, places in self._places.items() if base in bases}
        for base in reversed([base for base in bases if base < offset]):
            with SegmentReader(Path(log_path(str(self._directory), base))) as reader:
                yield from self._newest_in(reader, base, offset)

    def _newest_in(self, reader: SegmentReader, base: int, offset: int) -> Iterator[TailRecord]:
        places = self._extended(reader, base)
        end = bisect_left(places, offset, key=lambda place: place.offset)
        for number in reversed(range(end)):
            until = places[number + 1].position if number + 1 < len(places) else reader.size_bytes
            found = [
                TailRecord(record, header)
                for batch in reader.walk(places[number].position, until)
                for header, record in _records(batch)
                if record.offset < offset
            ]
            yield from reversed(found)

    def _extended(self, reader: SegmentReader, base: int) -> list[_Place]:
        """Return the places of a segment up to its end."""
        places = self._places.setdefault(base, [])
        if places and not _is_there(reader, places[-1]):
            places.clear()
        start = places.pop().position if places else 0
        for number, batch in enumerate(reader.walk(start)):
            if number % PLACE_EVERY == 0 and isinstance(batch.header, BatchHeader):
                places.append(_Place(batch.header.base_offset, batch.position))
        return places


def _is_there(reader: SegmentReader, place: _Place) -> bool:
    try:
        batch = reader.batch_at(place.position)
    except CorruptBatchError:
        return False
    return isinstance(batch.header, BatchHeader) and batch.header.base_offset == place.offset and batch.is_valid


def _records(batch: StoredBatch) -> Iterator[tuple[BatchHeader, Record]]:
    if isinstance(batch.header, BatchHeader) and batch.is_valid:
        for record in decode_records(batch.data, batch.header):
            yield batch.header, record
