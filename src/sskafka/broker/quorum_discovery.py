"""Find the voters of the metadata quorum from controller.quorum.bootstrap.servers."""

import asyncio
import logging
from typing import Final

from sskafka.client.broker_link import Address, BrokerLink, ConnectionOptions
from sskafka.client.errors import ClientError
from sskafka.client.node_security import link_security
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.listeners import parse_address
from sskafka.model.settings import Settings
from sskafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)

_log = logging.getLogger(__name__)

SETTING: Final = "controller.quorum.bootstrap.servers"
RETRY_PAUSE_S = 0.2


async def with_discovered_voters(settings: Settings) -> Settings:
    """Return the settings with controller.quorum.voters, asking the quorum if only bootstrap servers are set.

    Raises KafkaError if no controller answers within initial.broker.registration.timeout.ms."""
    servers = settings[SETTING]
    if not servers or settings.voters or "controller" in settings["process.roles"]:
        return settings
    timeout_ms = settings["initial.broker.registration.timeout.ms"]
    problem = ""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while True:
                for server in servers:
                    try:
                        voters = await _voters_known_to(_address(server), settings)
                    except (ClientError, KafkaError) as error:
                        problem = str(error)
                        continue
                    _log.info("voters of the metadata quorum, as returned by %s: %s", server, voters)
                    return settings.with_voters(voters)
                await asyncio.sleep(RETRY_PAUSE_S)
    except TimeoutError:
        text = f"none of {SETTING} ({', '.join(servers)}) returned the voters of the quorum: {problem}"
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, text) from None


def _address(server: str) -> Address:
    parsed = parse_address(SETTING, server)
    assert parsed is not None, "checked when the settings were read"
    return Address(*parsed)


async def _voters_known_to(address: Address, settings: Settings) -> str:
    """Return `id@host:port` of each voter, as known to the node at `address`."""
    options = ConnectionOptions(
        f"node-{settings['node.id']}",
        connect_timeout_ms=settings["socket.connection.setup.timeout.ms"],
        request_timeout_ms=settings["controller.socket.timeout.ms"],
        security=link_security(settings, settings.quorum_endpoint),
    )
    link = BrokerLink(lambda: address, options)
    try:
        request = DescribeQuorumRequest([RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])])
        response = await link.request(request, DescribeQuorumResponse)
    finally:
        link.close()
    nodes = [node for node in response.nodes if node.listeners]
    voters = [f"{node.node_id}@{node.listeners[0].host}:{node.listeners[0].port}" for node in nodes]
    if response.error_code or not voters:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"{address} returned no voters of the metadata quorum")
    return ",".join(voters)
