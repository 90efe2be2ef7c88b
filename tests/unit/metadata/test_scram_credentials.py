"""SCRAM credentials. The error messages are those of Apache Kafka 4.3.1."""

import hashlib
import hmac
from base64 import b64decode
from typing import Any

import pytest
from metadata_clusters import cluster, decided

from sskafka.metadata.image import ClusterImage
from sskafka.metadata.scram_credentials import alter_user_scram_credentials, describe_user_scram_credentials
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from sskafka.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

SHA_256, SHA_512 = 1, 2


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(user, mechanism, iterations, b"salt", b"p" * 32)


def alter(image: ClusterImage, *changes: ScramCredentialDeletion | ScramCredentialUpsertion) -> dict[str, Any]:
    request = AlterUserScramCredentialsRequest(
        [item for item in changes if isinstance(item, ScramCredentialDeletion)],
        [item for item in changes if isinstance(item, ScramCredentialUpsertion)],
    )
    response = decided(image, alter_user_scram_credentials(image, request))
    return {result.user: (result.error_code, result.error_message) for result in response.results}


def described(image: ClusterImage, *users: str) -> dict[str, Any]:
    request = DescribeUserScramCredentialsRequest([UserName(user) for user in users])
    response = describe_user_scram_credentials(image, request)
    assert response.error_code == ErrorCode.NONE
    return {
        result.user: result.error_message or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in response.results
    }


def test_credentials_are_set_and_deleted() -> None:
    image = cluster()
    assert alter(image, upsertion("a"), upsertion("b", SHA_512, 8192)) == {"a": (0, None), "b": (0, None)}
    assert described(image) == {"a": [(SHA_256, 4096)], "b": [(SHA_512, 8192)]}
    assert described(image, "a") == {"a": [(SHA_256, 4096)]}
    assert alter(image, ScramCredentialDeletion("a", SHA_256)) == {"a": (0, None)}
    assert described(image) == {"b": [(SHA_512, 8192)]}


def test_the_stored_keys_prove_the_exchange_of_rfc_7677() -> None:
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    exchange = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s={salt},i=4096,c=biws,r={nonce}".encode()
    client_proof = b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    salted_password = hashlib.pbkdf2_hmac("sha256", b"pencil", b64decode(salt), 4096)
    image = cluster()
    alter(image, ScramCredentialUpsertion("user", SHA_256, 4096, b64decode(salt), salted_password))
    record = image.scram_credentials["user", SHA_256]
    signature = hmac.digest(record.stored_key, exchange, "sha256")
    client_key = bytes(one ^ other for one, other in zip(client_proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == record.stored_key
    server_signature = b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert hmac.digest(record.server_key, exchange, "sha256") == server_signature


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("a", SHA_256, 10), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("a", SHA_256, 20000), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            ScramCredentialDeletion("a", SHA_256),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_invalid_credentials_are_rejected(
    change: ScramCredentialDeletion | ScramCredentialUpsertion, code: ErrorCode, text: str
) -> None:
    image = cluster()
    assert alter(image, change) == {change.name: (code, text)}
    assert image.scram_credentials == {}


def test_a_user_may_occur_only_once_in_a_request() -> None:
    image = cluster()
    text = "A user credential cannot be altered twice in the same request"
    assert alter(image, upsertion("a"), upsertion("a", SHA_512)) == {"a": (ErrorCode.DUPLICATE_RESOURCE, text)}
    assert described(image, "a", "a", "b") == {
        "a": "Cannot describe SCRAM credentials for the same user twice in a single request: a",
        "b": "Attempt to describe a user credential that does not exist: b",
    }
