import pytest

from sskafka.wire.apis import ApiKey
from sskafka.wire.errors import MalformedMessageError
from sskafka.wire.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.DESCRIBE_CLUSTER, 0, 2, 1),
        (999, 0, 1, 0),
    ],
)
def test_which_header_a_version_has(key: int, version: int, request_header: int, response_header: int) -> None:
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "ä" * 300])
@pytest.mark.parametrize("version", [8, 9])
def test_request_headers_round_trip(version: int, client_id: str | None) -> None:
    encoded = encode_request_header(ApiKey.PRODUCE, version, -5, client_id)
    header = decode_request_header(b"size" + encoded + b"body", 4)
    assert header == RequestHeader(ApiKey.PRODUCE, version, -5, client_id, 4 + len(encoded))


def test_the_bytes_of_a_request_header() -> None:
    assert encode_request_header(ApiKey.PRODUCE, 9, 7, "me").hex() == "000000090000000700026d6500"
    assert encode_request_header(ApiKey.PRODUCE, 8, 7, None).hex() == "0000000800000007ffff"


def test_tags_in_a_request_header_are_skipped() -> None:
    header = decode_request_header(bytes.fromhex("0000 0009 00000007 ffff 01 05 02 6162 ee"))
    assert header.body_position == 15


@pytest.mark.parametrize(
    "frame",
    [b"", b"\x00\x00\x00\x09", bytes.fromhex("0000 0009 00000007 0005 6d65"), bytes.fromhex("0000 0009 00000007 ffff")],
)
def test_truncated_request_headers(frame: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_request_header(frame)


def test_a_client_id_must_be_utf_8() -> None:
    with pytest.raises(MalformedMessageError):
        decode_request_header(bytes.fromhex("0000 0008 00000007 0001 ff"))


@pytest.mark.parametrize("version", [8, 9])
def test_response_headers_round_trip(version: int) -> None:
    encoded = encode_response_header(ApiKey.PRODUCE, version, 77)
    assert len(encoded) == (4 if version == 8 else 5)
    assert decode_response_header(ApiKey.PRODUCE, version, b"size" + encoded + b"body", 4) == (77, 4 + len(encoded))


def test_truncated_response_headers() -> None:
    for frame in (b"\0\0\0", b"\0\0\0\0", b"\0\0\0\0\x01"):
        with pytest.raises(MalformedMessageError):
            decode_response_header(ApiKey.PRODUCE, 9, frame)
