"""Connections from this node to the voters, for the quorum's own requests.

Two to each: fetches wait at the leader, and what is urgent must not wait behind them. A connection is made when it is
first needed and made anew after it broke. Every request has a time limit; one that fails is reported at once.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from sskafka.client.connection import Address, BrokerConnection, ConnectionOptions, connect
from sskafka.client.errors import ClientError, ConnectionRefusedByBrokerError
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import Uuid
from sskafka.quorum.driver import Done, NoAnswer
from sskafka.quorum.raft_messages import response_from_wire, to_wire
from sskafka.raft.messages import FetchRequest, FetchSnapshotRequest, PeerRequest, PeerResponse
from sskafka.records.batch import CorruptBatchError
from sskafka.wire.apis import API_BY_KEY

_log = logging.getLogger(__name__)


class NodeConnection:
    """One connection to one node, remade after a failure."""

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.address = address
        self._options = options
        self._connection: BrokerConnection | None = None
        self._connecting = asyncio.Lock()
        self._failures = 0

    async def get(self) -> BrokerConnection:
        async with self._connecting:
            if self._connection is None or not self._connection.is_open:
                self._failures += 1
                self._connection = await connect(self.address, self._options, failures=self._failures - 1)
                self._failures = 0
            return self._connection

    def drop(self) -> None:
        """Nobody knows what became of a request: its connection is not used again."""
        if self._connection is not None:
            self._connection.abort("a request failed")
            self._connection = None


class PeerNetwork:
    def __init__(
        self,
        cluster_id: str,
        addresses: Mapping[int, Address],
        options: ConnectionOptions,
        on_other_cluster: Callable[[int], None],
        directory_id: Uuid,
    ) -> None:
        self._cluster_id = cluster_id
        self._directory_id = directory_id
        self._urgent = {node: NodeConnection(address, options) for node, address in addresses.items()}
        self._patient = {node: NodeConnection(address, options) for node, address in addresses.items()}
        self._on_other_cluster = on_other_cluster
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, to: int, request: PeerRequest, done: Done) -> None:
        is_fetch = isinstance(request, FetchRequest | FetchSnapshotRequest)
        connection = (self._patient if is_fetch else self._urgent)[to]
        task = asyncio.get_running_loop().create_task(self._exchange(to, connection, request, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, to: int, connection: NodeConnection, request: PeerRequest, done: Done) -> None:
        response: PeerResponse | NoAnswer = NoAnswer.LOST
        try:
            response = await self._ask(connection, request, to)
        except ConnectionRefusedByBrokerError as error:
            _log.debug("%s to node %d failed: %s", type(request).__name__, to, error)
            response = NoAnswer.REFUSED
        except (ClientError, CorruptBatchError) as error:
            _log.debug("%s to node %d failed: %s", type(request).__name__, to, error)
            connection.drop()
        except KafkaError as error:
            _log.debug("%s to node %d was refused: %s", type(request).__name__, to, error)
            if error.code is ErrorCode.INCONSISTENT_CLUSTER_ID:
                self._on_other_cluster(to)
        except Exception:  # the boundary of a task: a strange answer is as good as none
            _log.exception("%s to node %d", type(request).__name__, to)
            connection.drop()
        done(response)

    async def _ask(self, node: NodeConnection, request: PeerRequest, to: int) -> PeerResponse:
        message = to_wire(request, self._cluster_id, to, self._directory_id)
        connection = await node.get()
        key = message.SCHEMA.key
        assert key is not None
        return response_from_wire(await connection.request(message, API_BY_KEY[key].response_class()))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for connection in (*self._urgent.values(), *self._patient.values()):
            connection.drop()
