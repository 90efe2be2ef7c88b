"""`sskafka cluster up` prints where the console is, before the brokers are ready."""

import pytest

from sskafka.cli.cluster.readiness import Member
from sskafka.cli.cluster.up import _tell_console
from sskafka.client.connection import Address

MEMBERS = [
    Member(1, Address("localhost", 9092), Address("localhost", 8001)),
    Member(2, Address("localhost", 9093), None),
]


@pytest.mark.parametrize(
    ("members", "settings", "is_secure", "told"),
    [
        (MEMBERS, {}, False, "console: http://localhost:8001/\n"),
        (MEMBERS, {}, True, "console: https://localhost:8001/\n"),
        ([MEMBERS[0], MEMBERS[0]], {}, False, "console: http://localhost:8001/ (every broker has one)\n"),
        (MEMBERS, {"console.enable": "false"}, False, ""),
        (MEMBERS[1:], {}, False, ""),
    ],
)
def test_the_address_of_the_console(
    members: list[Member], settings: dict[str, str], is_secure: bool, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _tell_console(members, settings, is_secure=is_secure)
    assert capsys.readouterr().err == told
