"""The context of every route: this broker, the leader, and connections to the cluster."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, Self

from fastapi import Depends
from pydantic import AfterValidator
from starlette.requests import Request

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, configured
from sskafka.client.connection import Address, connect
from sskafka.client.security import ClientSecurity
from sskafka.model.counters import AcceptorCounters
from sskafka.model.listeners import PLAINTEXT
from sskafka.runtime.clock import Clock
from sskafka.servers.http.browsing.schema_files import SchemaFiles
from sskafka.servers.http.caller import HttpCaller, caller_of
from sskafka.servers.http.caller_clients import CallerClients, ClientPool, connect_for
from sskafka.servers.http.configuration import Configuration
from sskafka.servers.http.history.series import History
from sskafka.servers.http.metrics import NodeMetrics
from sskafka.servers.http.problems import MISDIRECTED, Problem, documented
from sskafka.servers.http.replica_wait import FollowerReports, ReplicaWait
from sskafka.servers.local.link import BrokerGoneError, LocalLink

NO_LEADER = -1
NOWHERE = ("", 0)  # controllers have no route that connects there
CLIENT_ID = "http-server"
QUICK_TIMEOUT_MS = 10_000  # after so long without an answer another leader is looked for
REQUEST_TIMEOUT_MS = 30_000
NOT_THE_LEADER = documented({MISDIRECTED: "Another broker is the leader; the detail names it."})


class HttpContext:
    def __init__(self, configuration: Configuration, link: LocalLink, clock: Clock) -> None:
        self.configuration = configuration
        self.link = link
        self.clock = clock
        self.leader_id = NO_LEADER
        self._link_properties: Mapping[str, str] = configuration.security.kafka_properties
        """How brokers connect to each other now."""
        self.cluster = self._new_cluster(None, QUICK_TIMEOUT_MS)
        """The cluster as the HTTP server itself uses it. Requests of clients use `clients`."""
        self.reports = FollowerReports()
        wait = ReplicaWait(self.cluster, self.reports)
        self._pool = ClientPool(self._new_cluster, wait, QUICK_TIMEOUT_MS, REQUEST_TIMEOUT_MS)
        self.acceptor_counters = AcceptorCounters("HTTP")
        cluster = self.cluster if configuration.is_broker else None
        self.metrics = NodeMetrics(link, self.acceptor_counters, cluster, clock)
        self.schemas = SchemaFiles(configuration.schema_directory)
        self.history = History()
        """The last minutes of the cluster, which process.py samples."""
        self._stack = AsyncExitStack()

    def _new_cluster(self, caller: HttpCaller | None, request_timeout_ms: int) -> Cluster:
        """Return a cluster with its own connections: a long wait on a connection would delay the requests after it."""
        own = Address(*(self.configuration.kafka_address or NOWHERE))
        connector = connect if caller is None else partial(connect_for, caller)
        config = self._config(request_timeout_ms)
        security = ClientSecurity(config, lambda: self._config(request_timeout_ms)) if self._links_are_secure else None
        return Cluster([own], config, clock=self.clock, connector=connector, security=security)

    def _config(self, request_timeout_ms: int) -> ConnectionConfig:
        """Return the properties of a connection that is opened now."""
        own = {
            "client.id": f"{CLIENT_ID}-{self.configuration.node_id}",
            "request.timeout.ms": str(request_timeout_ms),
        }
        return configured(ConnectionConfig, {**self._link_properties, **own})

    @property
    def _links_are_secure(self) -> bool:
        return self._link_properties.get("security.protocol", PLAINTEXT) != PLAINTEXT

    def clients(self, request: Request) -> AbstractAsyncContextManager[CallerClients]:
        """Lend the connections on which brokers know the client that has sent this request."""
        return self._pool.clients_of(self.client_of(request))

    def client_of(self, request: Request) -> HttpCaller | None:
        """Return the client that brokers see behind this request; None where all clients are the same to them."""
        return caller_of(request) if self.configuration.security.acts_for_clients else None

    @property
    def leads(self) -> bool:
        """Return whether this broker is the active controller, which the lab calls the leader."""
        return self.leader_id == self.configuration.node_id

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self.cluster.close)
        await self._stack.enter_async_context(self._pool)
        self.leader_id = await self.link.ask("leader", known=None)
        watch = asyncio.create_task(self._watch_leader())
        self._stack.callback(watch.cancel)
        if self._links_are_secure:
            watch_links = asyncio.create_task(self._watch_link_properties())
            self._stack.callback(watch_links.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _watch_leader(self) -> None:
        try:
            while True:
                self.leader_id = await self.link.ask("leader", known=self.leader_id)
        except BrokerGoneError:
            self.leader_id = NO_LEADER

    async def _watch_link_properties(self) -> None:
        number = 0
        with suppress(BrokerGoneError):
            while True:
                answer = await self.link.ask("link_properties", known=number)
                number, self._link_properties = answer["number"], answer["options"]


def leader_only(context: HttpContext) -> Any:
    """Return a dependency that accepts requests only on the lab's leader, the active controller.

    Other brokers reject such requests with 421."""

    async def check() -> None:
        if not context.leads:
            raise Problem(MISDIRECTED, f"leader is {context.leader_id}, can't accept")

    return Depends(check)


def at_most(limit: int) -> AfterValidator:
    """Lower a larger number to `limit`: a request for more gets as much as the server allows."""
    return AfterValidator(lambda number: min(number, limit))
