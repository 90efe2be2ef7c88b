"""`--add-scram` in the syntax of Kafka's storage tool."""

from base64 import b64encode

import pytest

from sskafka.metadata.scram_bootstrap import ScramArgumentError, parse_scram_argument
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramCredential


def random(count: int) -> bytes:
    return bytes(range(count))


def test_a_password_becomes_keys() -> None:
    record = parse_scram_argument("SCRAM-SHA-256=[name=alice,password=alice-secret]", random)
    mechanism = SCRAM_MECHANISMS["SCRAM-SHA-256"]
    salted = mechanism.salted_password("alice-secret", random(20), 4096)
    expected = ScramCredential.of_salted_password(mechanism, salted, random(20), 4096)
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("alice", 1, random(20), 4096)
    assert (record.stored_key, record.server_key) == (expected.stored_key, expected.server_key)


def test_a_salted_password_gives_the_same_credential_as_its_password() -> None:
    mechanism, salt = SCRAM_MECHANISMS["SCRAM-SHA-512"], b64encode(random(12)).decode()
    salted = b64encode(mechanism.salted_password("x,y", random(12), 8192)).decode()
    by_password = f'SCRAM-SHA-512=[name=bob,iterations=8192,salt="{salt}",password="x,y"]'
    by_salted = f'SCRAM-SHA-512=[name=bob,iterations=8192,salt="{salt}",saltedpassword="{salted}"]'
    assert parse_scram_argument(by_password, random) == parse_scram_argument(by_salted, random)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alice:hunter2", "expected MECHANISM"),
        ("PLAIN=[name=alice,password=hunter2]", "PLAIN is none of"),
        ("SCRAM-SHA-256=[password=hunter2]", "must supply 'name'"),
        ("SCRAM-SHA-256=[name=alice]", "only supply one of"),
        ("SCRAM-SHA-256=[name=alice,password=hunter2,saltedpassword=QUJD]", "only supply one of"),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=QUJD]", "supply 'salt'"),
        ("SCRAM-SHA-256=[name=alice,password=hunter2,iterations=1]", "from 4096 to 16384"),
        ("SCRAM-SHA-256=[name=alice,password=hunter2,salt=!]", "base64"),
        ("SCRAM-SHA-256=[name=alice,pass=hunter2]", "expected name, password"),
        ("SCRAM-SHA-256=[name=alice,name=bob,password=hunter2]", "occurs twice"),
    ],
)
def test_bad_arguments_are_refused_without_their_password(text: str, said: str) -> None:
    with pytest.raises(ScramArgumentError, match=said) as caught:
        parse_scram_argument(text, random)
    assert "hunter2" not in str(caught.value)
