"""When a local cluster can be used: every broker answers, and each one knows the controller and all the others.

Where brokers have an HTTP server, it must report readiness too.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from sskafka.cli.output import talk
from sskafka.client.connection import Address, ConnectionOptions, connect
from sskafka.client.errors import ClientError
from sskafka.model.errors import ErrorCode
from sskafka.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

_OPTIONS = ConnectionOptions(client_id="sskafka-cluster", connect_timeout_ms=2000, request_timeout_ms=2000)
_POLL_S = 0.05
_PATIENCE_S = 10.0
_HTTP_TIMEOUT_S = 2.0


class Member(NamedTuple):
    node_id: int
    address: Address
    http: Address | None = None


async def until_ready(members: Sequence[Member]) -> None:
    """Returns when the cluster can be used; now and then says what it still waits for."""
    waiting = {member.node_id: "does not answer" for member in members}
    async with asyncio.TaskGroup() as tasks:
        narrator = tasks.create_task(_tell_waiting(waiting))
        watchers = [tasks.create_task(_watch(member, members, waiting)) for member in members]
        await asyncio.wait(watchers)
        narrator.cancel()


async def _watch(member: Member, members: Sequence[Member], waiting: dict[int, str]) -> None:
    while problem := await _problem(member, members):
        waiting[member.node_id] = problem
        await asyncio.sleep(_POLL_S)
    del waiting[member.node_id]


async def _problem(member: Member, members: Sequence[Member]) -> str:
    """Why this broker cannot be used yet; empty when it can. Fenced brokers are not in its answer."""
    try:
        connection = await connect(member.address, _OPTIONS)
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
    return await _problem_over_http(member.http) if member.http is not None else ""


async def _problem_over_http(address: Address) -> str:
    try:
        async with asyncio.timeout(_HTTP_TIMEOUT_S):
            status_line = await _status_line(address)
    except OSError as error:  # TimeoutError is one
        return f"does not answer over HTTP: {error}"
    return "" if b" 200 " in status_line else f"is not ready over HTTP: {status_line.decode(errors='replace').strip()}"


async def _status_line(address: Address) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port)
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
