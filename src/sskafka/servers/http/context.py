"""The context of every route: this broker, the leader, and connections to the cluster."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Self

from fastapi import Depends
from pydantic import AfterValidator

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig
from sskafka.client.connection import Address
from sskafka.model.counters import AcceptorCounters
from sskafka.runtime.clock import Clock
from sskafka.servers.http.configuration import Configuration
from sskafka.servers.http.problems import MISDIRECTED, Problem, documented
from sskafka.servers.http.record_reader import RecordReader
from sskafka.servers.http.record_writer import RecordWriter
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
        self.cluster = self.new_cluster(QUICK_TIMEOUT_MS)
        """For requests that are answered at once."""
        self.administration = self.new_cluster()
        """For changes, which wait until they are committed."""
        self.reports = FollowerReports()
        self.reader = RecordReader(self.cluster, partial(self.new_cluster, QUICK_TIMEOUT_MS))
        self.writer = RecordWriter(self.cluster, self.new_cluster(), ReplicaWait(self.cluster, self.reports))
        self.acceptor_counters = AcceptorCounters("HTTP")
        self._stack = AsyncExitStack()

    def new_cluster(self, request_timeout_ms: int = REQUEST_TIMEOUT_MS) -> Cluster:
        """Return a cluster with its own connections: a long wait on a connection would delay the requests after it."""
        own = Address(*(self.configuration.kafka_address or NOWHERE))
        client_id = f"{CLIENT_ID}-{self.configuration.node_id}"
        return Cluster([own], ConnectionConfig(client_id, request_timeout_ms), clock=self.clock)

    @property
    def leads(self) -> bool:
        """Return whether this broker is the active controller, which the lab calls the leader."""
        return self.leader_id == self.configuration.node_id

    async def __aenter__(self) -> Self:
        self._stack.push_async_callback(self.cluster.close)
        self._stack.push_async_callback(self.administration.close)
        if self.configuration.is_broker:
            await self._stack.enter_async_context(self.reader)
            await self._stack.enter_async_context(self.writer)
        self.leader_id = await self.link.ask("leader", known=None)
        watch = asyncio.create_task(self._watch_leader())
        self._stack.callback(watch.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _watch_leader(self) -> None:
        try:
            while True:
                self.leader_id = await self.link.ask("leader", known=self.leader_id)
        except BrokerGoneError:
            self.leader_id = NO_LEADER


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
