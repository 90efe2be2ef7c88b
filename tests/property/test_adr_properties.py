"""ADR-0011's frames: whatever is written is read again, and whatever comes is read or refused, never worse."""

from hypothesis import given
from hypothesis import strategies as st

from sskafka.wire.adr import (
    Answer,
    Consume,
    Consumed,
    Failure,
    Flush,
    Flushed,
    MalformedFrameError,
    Produce,
    Produced,
    Request,
    StoredMessage,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
    read_head,
)

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(max_size=20)
keys = st.none() | st.text(min_size=1, max_size=20).map(str.encode)
messages = st.lists(st.builds(StoredMessage, int64, st.binary(max_size=30)), max_size=5)

requests = st.one_of(
    st.builds(Produce, text, keys, st.binary(max_size=50)),
    st.builds(Consume, text, int32, int64, int32),
    st.just(Flush()),
)
answers = st.one_of(
    st.builds(Produced, int64, int32),
    st.builds(Consumed, int64, messages),
    st.just(Flushed()),
    st.builds(Failure, st.sampled_from([2, 6]), text, st.just(-1)),
    st.builds(Failure, st.just(4), text, int32),
)


@given(requests)
def test_requests_are_read_as_they_were_written(request: Request) -> None:
    frame = encode_request(request)
    length, frame_type = read_head(frame[:5])
    assert length == len(frame)
    assert decode_request(frame_type, frame[5:]) == request


@given(answers)
def test_answers_are_read_as_they_were_written(answer: Answer) -> None:
    frame = encode_answer(answer)
    assert read_head(frame[:5])[0] == len(frame)
    assert decode_answer(frame[4], frame[5:]) == answer


@given(st.integers(0, 255), st.binary(max_size=60))
def test_anything_else_is_refused(frame_type: int, body: bytes) -> None:
    for decode, encode in ((decode_request, encode_request), (decode_answer, encode_answer)):
        try:
            found = decode(frame_type, body)
        except MalformedFrameError:
            continue
        again = encode(found)  # type: ignore[arg-type]
        assert decode(frame_type, again[5:]) == found
