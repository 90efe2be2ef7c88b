from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from sskafka.client.frames import SCRATCH_BYTES, FrameReceiver

sizes = st.integers(0, 40) | st.integers(SCRATCH_BYTES - 10, SCRATCH_BYTES + 10) | st.integers(0, 3 * SCRATCH_BYTES)


@settings(deadline=None)  # machines may be busy
@given(st.lists(sizes, max_size=6), st.lists(st.integers(1, 10) | st.integers(1000, 100_000), min_size=4, max_size=20))
def test_frames_come_out_as_they_went_in_however_the_stream_is_chopped(
    frame_sizes: list[int], chops: list[int]
) -> None:
    frames = [bytes([number + 1]) * size for number, size in enumerate(frame_sizes)]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    receiver, received, position = FrameReceiver(), [], 0
    for chop in cycle(chops):
        if position == len(stream):
            break
        room = receiver.get_buffer()
        count = min(chop, len(room), len(stream) - position)
        room[:count] = stream[position : position + count]
        received += receiver.received(count)
        position += count
    assert [bytes(frame) for frame in received] == frames
