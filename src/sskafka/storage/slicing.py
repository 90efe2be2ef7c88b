"""Map offsets to slices of segment files, for readers."""

from sskafka.storage.file_slice import FileSlice
from sskafka.storage.segment import Segment
from sskafka.storage.segments import Segments


def read_slices(segments: Segments, offset: int, max_bytes: int, up_to_offset: int, min_one: bool) -> list[FileSlice]:
    """Return batches from the one with `offset` on, none that reaches `up_to_offset`, which lies within the log."""
    slices: list[FileSlice] = []
    segment = segments.containing(offset)
    start = segment.position_of(offset)
    while True:
        end, following = _end_position(segments, segment, up_to_offset)
        length = min(end - start, max_bytes)
        if length < end - start and min_one and not slices:
            length = max(length, segment.batch_size_at(start))
        if length > 0:
            slices.append(FileSlice(segment.file, start, length))
            max_bytes -= length
        if following is None or max_bytes <= 0:
            return slices
        segment, start = following, 0


def _end_position(segments: Segments, segment: Segment, up_to_offset: int) -> tuple[int, Segment | None]:
    """Return where a read up to `up_to_offset` must stop in `segment`, and the segment in which the read continues."""
    if segment is segments.active:
        return segment.position_of(up_to_offset), None
    following = segments.after(segment)
    assert following is not None
    if following.base_offset < up_to_offset:
        return segment.size_bytes, following
    return segment.position_of(up_to_offset), None
