"""SCRAM credentials of `sskafka storage format --add-scram`, in the syntax of Kafka's storage tool.

SCRAM-SHA-256=[name=alice,password=alice-secret]
SCRAM-SHA-512=[name=alice,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5Y2FnNHg=",saltedpassword="..."]
"""

import binascii
import re
from base64 import b64decode

from sskafka.metadata.controller_result import RandomBytes
from sskafka.metadata.records import UserScramCredentialRecord
from sskafka.metadata.scram_credentials import ITERATIONS_MAX, ITERATIONS_MIN
from sskafka.model.security.scram import SCRAM_MECHANISMS, ScramCredential, ScramMechanism

SALT_BYTES = 20
_ARGUMENT = re.compile(r"(?P<mechanism>[^=\s]+)=\[(?P<fields>.*)\]", re.DOTALL)
_FIELD = re.compile(
    r'\s*(?P<name>name|password|iterations|salt|saltedpassword)=(?:"(?P<quoted>[^"]*)"|(?P<bare>[^,]*))'
)


class ScramArgumentError(ValueError):
    """An `--add-scram` argument cannot be used. The text does not repeat passwords."""


def parse_scram_argument(text: str, random: RandomBytes) -> UserScramCredentialRecord:
    """Return the metadata record of a credential; a missing salt is drawn from `random`."""
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise ScramArgumentError("expected MECHANISM=[name=USER,password=PASSWORD]")
    mechanism = SCRAM_MECHANISMS.get(match["mechanism"])
    if mechanism is None:
        raise ScramArgumentError(f"{match['mechanism']} is none of {', '.join(SCRAM_MECHANISMS)}")
    fields = _fields(match["fields"])
    if not fields.get("name"):
        raise ScramArgumentError("You must supply 'name' to add-scram")
    if ("password" in fields) == ("saltedpassword" in fields):
        raise ScramArgumentError("You must only supply one of 'password' or 'saltedpassword' to add-scram")
    if "saltedpassword" in fields and "salt" not in fields:
        raise ScramArgumentError("You must supply 'salt' with 'saltedpassword' to add-scram")
    return _record(mechanism, fields, random)


def _record(mechanism: ScramMechanism, fields: dict[str, str], random: RandomBytes) -> UserScramCredentialRecord:
    iterations = _iterations(fields.get("iterations", str(ITERATIONS_MIN)))
    salt = _decoded(fields["salt"]) if "salt" in fields else random(SALT_BYTES)
    if "saltedpassword" in fields:
        salted = _decoded(fields["saltedpassword"])
    else:
        salted = mechanism.salted_password(fields["password"], salt, iterations)
    stored = ScramCredential.of_salted_password(mechanism, salted, salt, iterations)
    return UserScramCredentialRecord(
        fields["name"], mechanism.code, salt, stored.stored_key, stored.server_key, iterations
    )


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _FIELD.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise ScramArgumentError("expected name, password, iterations, salt or saltedpassword, each as NAME=VALUE")
        if match["name"] in fields:
            raise ScramArgumentError(f"{match['name']} occurs twice")
        fields[match["name"]] = match["bare"] if match["quoted"] is None else match["quoted"]
        position = match.end() + 1
    return fields


def _iterations(text: str) -> int:
    if not text.isdecimal() or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise ScramArgumentError(f"'iterations' must be from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramArgumentError("salt and saltedpassword are base64") from None
