"""SCRAM credentials of users: AlterUserScramCredentials and DescribeUserScramCredentials.

Listeners with SASL check logins against them (model/security/scram.py).
Of a password, only the two keys that a broker needs to verify it are stored (RFC 5802).
"""

import hashlib
import hmac
from collections import Counter
from typing import TypeAlias

from sskafka.metadata.controller_result import ControllerResult
from sskafka.metadata.image import ClusterImage
from sskafka.metadata.records import MetadataRecord, RemoveUserScramCredentialRecord, UserScramCredentialRecord
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.wire.messages import alter_user_scram_credentials as altering
from sskafka.wire.messages import describe_user_scram_credentials as describing

HASHES = {1: "sha256", 2: "sha512"}
Change: TypeAlias = altering.ScramCredentialDeletion | altering.ScramCredentialUpsertion
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384


def alter_user_scram_credentials(
    image: ClusterImage, request: altering.AlterUserScramCredentialsRequest
) -> ControllerResult[altering.AlterUserScramCredentialsResponse]:
    changes: list[Change] = [*request.deletions, *request.upsertions]
    repetitions = Counter(change.name for change in changes)
    records: list[MetadataRecord] = []
    results: dict[str, altering.AlterUserScramCredentialsResult] = {}
    for change in changes:
        code, text = ErrorCode.NONE, None
        try:
            _check(change, is_repeated=repetitions[change.name] > 1)
            records.append(_record(image, change))
        except KafkaError as error:
            code, text = error.code, error.message
        results[change.name] = altering.AlterUserScramCredentialsResult(change.name, code, text)
    return ControllerResult(records, altering.AlterUserScramCredentialsResponse(results=list(results.values())))


def _check(change: Change, *, is_repeated: bool) -> None:
    if is_repeated:
        text = "A user credential cannot be altered twice in the same request"
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
    if not change.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in HASHES:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _record(image: ClusterImage, change: Change) -> MetadataRecord:
    if isinstance(change, altering.ScramCredentialUpsertion):
        return _credential(change)
    if (change.name, change.mechanism) not in image.scram_credentials:
        text = "Attempt to delete a user credential that does not exist"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
    return RemoveUserScramCredentialRecord(change.name, change.mechanism)


def _credential(change: altering.ScramCredentialUpsertion) -> UserScramCredentialRecord:
    if change.iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
    algorithm, password = HASHES[change.mechanism], bytes(change.salted_password)
    client_key = hmac.digest(password, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        change.name,
        change.mechanism,
        bytes(change.salt),
        hashlib.new(algorithm, client_key).digest(),
        hmac.digest(password, b"Server Key", algorithm),
        change.iterations,
    )


def describe_user_scram_credentials(
    image: ClusterImage, request: describing.DescribeUserScramCredentialsRequest
) -> describing.DescribeUserScramCredentialsResponse:
    """Describe the named users, or all users if none is named."""
    infos: dict[str, list[describing.CredentialInfo]] = {}
    for (user, mechanism), record in image.scram_credentials.items():
        infos.setdefault(user, []).append(describing.CredentialInfo(mechanism, record.iterations))
    requested = Counter([user.name for user in request.users or ()] or list(infos))
    return describing.DescribeUserScramCredentialsResponse(
        results=[_described(user, times, infos) for user, times in requested.items()]
    )


def _described(
    user: str, times: int, infos: dict[str, list[describing.CredentialInfo]]
) -> describing.DescribeUserScramCredentialsResult:
    if times > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return describing.DescribeUserScramCredentialsResult(user, ErrorCode.DUPLICATE_RESOURCE, text)
    if user not in infos:
        text = f"Attempt to describe a user credential that does not exist: {user}"
        return describing.DescribeUserScramCredentialsResult(user, ErrorCode.RESOURCE_NOT_FOUND, text)
    return describing.DescribeUserScramCredentialsResult(user, credential_infos=infos[user])
