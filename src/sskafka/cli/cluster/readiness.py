"""Wait until a local cluster is ready: every broker answers and knows the controller and all other brokers.

Brokers with an HTTP server must report ready there too.
"""

import asyncio
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sskafka.cli.output import talk
from sskafka.client.connection import Address, ConnectionOptions, connect
from sskafka.client.errors import ClientError
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from sskafka.client.security import ClientSecurity

_POLL_S = 0.05
_PATIENCE_S = 10.0
_HTTP_TIMEOUT_S = 2.0


class Member(NamedTuple):
    node_id: int
    address: Address
    http: Address | None = None


async def until_ready(members: Sequence[Member], security: "ClientSecurity | None" = None) -> None:
    """Return when the cluster is ready. Print what is missing from time to time."""
    options = ConnectionOptions(
        client_id="sskafka-cluster", connect_timeout_ms=2000, request_timeout_ms=2000, security=security
    )
    waiting = {member.node_id: "does not answer" for member in members}
    async with asyncio.TaskGroup() as tasks:
        narrator = tasks.create_task(_tell_waiting(waiting))
        watchers = [tasks.create_task(_watch(member, members, waiting, options)) for member in members]
        await asyncio.wait(watchers)
        narrator.cancel()


async def _watch(
    member: Member, members: Sequence[Member], waiting: dict[int, str], options: ConnectionOptions
) -> None:
    while problem := await _problem(member, members, options):
        waiting[member.node_id] = problem
        await asyncio.sleep(_POLL_S)
    del waiting[member.node_id]


async def _problem(member: Member, members: Sequence[Member], options: ConnectionOptions) -> str:
    """Return why this broker is not ready yet, or an empty string. Its answer does not include fenced brokers."""
    try:
        connection = await connect(member.address, options)
        try:
            answer = await connection.request(DescribeClusterRequest(), DescribeClusterResponse)
        finally:
            await connection.close()
    except ClientError as error:
        return str(error)
    if answer.error_code != ErrorCode.NONE:
        return ErrorCode(answer.error_code).name
    if answer.controller_id < 0:
        return "knows no controller"
    missing = {item.node_id for item in members} - {item.broker_id for item in answer.brokers}
    if missing:
        return f"does not see broker {', '.join(map(str, sorted(missing)))}"
    return await _problem_over_http(member.http, options.security) if member.http is not None else ""


async def _problem_over_http(address: Address, security: "ClientSecurity | None") -> str:
    try:
        async with asyncio.timeout(_HTTP_TIMEOUT_S):
            status_line = await _status_line(address, None if security is None else await security.tls_context())
    except OSError as error:  # TimeoutError is one
        return f"does not answer over HTTP: {error}"
    return "" if b" 200 " in status_line else f"is not ready over HTTP: {status_line.decode(errors='replace').strip()}"


async def _status_line(address: Address, tls: ssl.SSLContext | None) -> bytes:
    """`tls`: the HTTP servers of a secure cluster have TLS, too."""
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
    try:
        writer.write(f"GET /readyz HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
        return await reader.readline()
    finally:
        writer.close()


async def _tell_waiting(waiting: dict[int, str]) -> None:
    while True:
        await asyncio.sleep(_PATIENCE_S)
        for node_id, problem in sorted(waiting.items()):
            talk(f"waiting for broker {node_id}: {problem}")
