"""Administration of users: their SCRAM credentials, which the metadata log stores.

A password never leaves this process. The request carries the salted password (PBKDF2), and the controller stores the
two keys that it derives from that.
"""

import asyncio
import os
from collections.abc import Iterable
from typing import NamedTuple

from sskafka.client.cluster import Cluster
from sskafka.client.errors import broker_error, raise_for
from sskafka.model.errors import ErrorCode
from sskafka.model.security.scram import SCRAM_MECHANISMS
from sskafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from sskafka.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

ITERATIONS = 8192
_SALT_BYTES = 20


class UserCredential(NamedTuple):
    user: str
    mechanism: str
    iterations: int


async def describe_users(cluster: Cluster, users: Iterable[str] = ()) -> list[UserCredential]:
    """Return the credentials of the users, sorted; of all users if none is named. Unknown users have none."""
    names = [UserName(user) for user in users]
    request = DescribeUserScramCredentialsRequest(names or None)

    async def attempt() -> DescribeUserScramCredentialsResponse:
        response = await (await cluster.any_connection()).request(request, DescribeUserScramCredentialsResponse)
        raise_for(response.error_code, response.error_message)
        return response

    mechanisms = {mechanism.code: name for name, mechanism in SCRAM_MECHANISMS.items()}
    found = []
    for result in (await cluster.retrying(attempt)).results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        raise_for(result.error_code, result.error_message)
        for info in result.credential_infos:
            mechanism = mechanisms.get(info.mechanism, f"unknown mechanism {info.mechanism}")
            found.append(UserCredential(result.user, mechanism, info.iterations))
    return sorted(found)


async def set_password(
    cluster: Cluster, user: str, password: str, mechanisms: Iterable[str], *, iterations: int = ITERATIONS
) -> None:
    """Set the password of the user for each mechanism, in one request each: Kafka takes a user once per request."""
    for name in mechanisms:
        mechanism = SCRAM_MECHANISMS[name]
        salt = os.urandom(_SALT_BYTES)
        salted = await asyncio.to_thread(mechanism.salted_password, password, salt, iterations)
        upsertion = ScramCredentialUpsertion(user, mechanism.code, iterations, salt, salted)
        await _alter(cluster, AlterUserScramCredentialsRequest(upsertions=[upsertion]))


async def remove_credentials(cluster: Cluster, user: str, mechanisms: Iterable[str]) -> None:
    for mechanism in mechanisms:
        deletion = ScramCredentialDeletion(user, SCRAM_MECHANISMS[mechanism].code)
        await _alter(cluster, AlterUserScramCredentialsRequest(deletions=[deletion]))


async def _alter(cluster: Cluster, request: AlterUserScramCredentialsRequest) -> None:
    async def attempt() -> None:
        response = await (await cluster.controller_connection()).request(request, AlterUserScramCredentialsResponse)
        for result in response.results:
            if result.error_code == ErrorCode.NOT_CONTROLLER:
                await cluster.refresh()
            if result.error_code != ErrorCode.NONE:
                raise broker_error(result.error_code, result.error_message)

    await cluster.retrying(attempt)
