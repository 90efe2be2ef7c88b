"""The frames of ADR-0011, byte for byte."""

import pytest

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
    answer_type,
    decode_answer,
    decode_request,
    encode_answer,
    encode_request,
    read_head,
)

REQUESTS: list[tuple[Request, str]] = [
    (Produce("orders", b"k1", b"data"), "0000001d 03 00000006 6f7264657273 00000002 6b31 00000004 64617461"),
    (Produce("t", None, b""), "00000012 03 00000001 74 00000000 00000000"),
    (Consume("t", 2, 258, 16), "0000001a 01 00000001 74 00000002 0000000000000102 00000010"),
    (Consume("t", -1, 0, 1), "0000001a 01 00000001 74 ffffffff 0000000000000000 00000001"),
    (Flush(), "00000005 05"),
]
ANSWERS: list[tuple[Answer, str]] = [
    (Produced(offset=258, partition=2), "00000012 04 01 0000000000000102 00000002"),
    (Failure(4, "no", partition=-1), "00000010 04 00 00000002 6e6f ffffffff"),
    (Failure(4, "no", partition=3), "00000010 04 00 00000002 6e6f 00000003"),
    (Consumed(7, []), "00000012 02 01 0000000000000007 00000000"),
    (
        Consumed(7, [StoredMessage(5, b"a"), StoredMessage(6, b"")]),
        "0000002b 02 01 0000000000000007 00000002 00000001 0000000000000005 61 00000000 0000000000000006",
    ),
    (Failure(2, "é"), "0000000c 02 00 00000002 c3a9"),
    (Flushed(), "00000006 06 01"),
    (Failure(6, "disk"), "0000000e 06 00 00000004 6469736b"),
]


def parts(frame: bytes) -> tuple[int, bytes]:
    length, frame_type = read_head(frame[:5])
    assert length == len(frame), "the length counts itself"
    return frame_type, frame[5:]


@pytest.mark.parametrize(("request_", "text"), REQUESTS)
def test_requests(request_: Request, text: str) -> None:
    frame = bytes.fromhex(text)
    assert encode_request(request_) == frame
    assert decode_request(*parts(frame)) == request_


@pytest.mark.parametrize(("answer", "text"), ANSWERS)
def test_answers(answer: Answer, text: str) -> None:
    frame = bytes.fromhex(text)
    assert encode_answer(answer) == frame
    assert decode_answer(*parts(frame)) == answer


@pytest.mark.parametrize(("request_", "text"), REQUESTS)
def test_requests_of_the_wrong_length_are_rejected(request_: Request, text: str) -> None:
    frame_type, body = parts(bytes.fromhex(text))
    for end in range(len(body)):
        with pytest.raises(MalformedFrameError):
            decode_request(frame_type, body[:end])
    with pytest.raises(MalformedFrameError, match="1 bytes follow"):
        decode_request(frame_type, body + b"\0")


@pytest.mark.parametrize(("answer", "text"), ANSWERS)
def test_a_truncated_response_is_rejected(answer: Answer, text: str) -> None:
    frame_type, body = parts(bytes.fromhex(text))
    for end in range(len(body)):
        with pytest.raises(MalformedFrameError):
            decode_answer(frame_type, body[:end])


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 3])
def test_lengths_are_checked_against_the_remaining_bytes(length: int) -> None:
    body = length.to_bytes(4, "big", signed=True) + b"t" + bytes(4) + bytes(4)
    with pytest.raises(MalformedFrameError):
        decode_request(3, body)


@pytest.mark.parametrize("body", ["00000001 ff 00000000 00000000", "00000001 74 00000001 ff 00000000"])
def test_topics_and_keys_are_utf_8(body: str) -> None:
    with pytest.raises(MalformedFrameError, match="not UTF-8"):
        decode_request(3, bytes.fromhex(body))


@pytest.mark.parametrize("frame_type", [0, 2, 4, 6, 7, 255])
def test_unknown_request_types_are_rejected(frame_type: int) -> None:
    with pytest.raises(MalformedFrameError, match="unknown request type"):
        decode_request(frame_type, b"")
    assert answer_type(frame_type) == frame_type


def test_response_types_follow_their_request_types() -> None:
    assert [answer_type(frame_type) for frame_type in (1, 3, 5)] == [2, 4, 6]
