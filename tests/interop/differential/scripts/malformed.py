"""Frames that are no requests: both systems must treat the connection the same."""

from differential.session import Session
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.codec import encode
from sskafka.wire.header import encode_request_header
from sskafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def frames(session: Session) -> None:
    header = encode_request_header(3, 9, 7, "malformed")
    for note, frame in {
        "a size of 0": bytes(4),
        "a negative size": b"\xff\xff\xff\xff",
        "a size beyond the limit": b"\x7f\xff\xff\xff",
        "a header that is cut": (4).to_bytes(4, "big") + b"\x00\x03\x00\x09",
        "a client id beyond the frame": (10).to_bytes(4, "big") + b"\x00\x03\x00\x00\x00\x00\x00\x07\x7f\xff",
        "a header and nothing else": len(header).to_bytes(4, "big") + header,
        "letters": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }.items():
        session.send_raw(frame, note)


def cut_and_extended_bodies(session: Session) -> None:
    """Kafka lets bytes behind a request pass, and closes the connection where some are missing."""
    body = encode(
        MetadataRequest(topics=[MetadataRequestTopic(name=session.name("none"))], allow_auto_topic_creation=False), 9
    )
    for end in (1, 5, len(body) - 1):
        session.send_bytes(3, 9, body[:end], f"{end} bytes of a request")
    session.send_bytes(3, 9, body + b"\0\0\0", "bytes behind a request", answered_as="Metadata")
    unknown_tag = body[:-1] + b"\x01\x63\x02ab"
    session.send_bytes(3, 9, unknown_tag, "an unknown tagged field", answered_as="Metadata")
    for key in (0, 1, 2, 8, 9, 11, 19, 22, 26, 32, 44, 60, 68, 75):
        api = API_BY_KEY[key]
        if session.pair.common_versions(key):
            session.send_bytes(key, api.max_version, b"\xff" * 12, f"{api.name} of ones")
