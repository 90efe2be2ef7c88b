"""ApiVersions: which APIs there are, in which versions, and the features of the cluster."""

from differential.session import Session
from sskafka.wire.apis import API_BY_KEY


def api_lists(session: Session) -> None:
    for software in (("differential", "1.0"), ("", ""), ("bad name!", "1.0"), ("name", "bad version!")):
        session.ask_each("ApiVersions", client_software_name=software[0], client_software_version=software[1])


def version_that_nobody_has(session: Session) -> None:
    """Only ApiVersions has an answer to that; every other connection ends."""
    session.send_bytes(18, 99, b"\x01\x01\x00", "ApiVersions of the future", answered_as="ApiVersions")
    for key in (0, 1, 3, 9, 19):
        session.send_bytes(key, API_BY_KEY[key].max_version + 1, b"\0" * 16, "one version too new")
    for key in (4, 5, 6, 7, 500, -1):
        session.send_bytes(key, 0, b"\0" * 16, "an API that does not exist")
    session.send_bytes(1, 0, b"\0" * 16, "a version that was removed")
    session.send_bytes(0, 2, b"\0" * 16, "a version that was removed")
