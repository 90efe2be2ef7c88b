"""The requests of this node's part of the quorum to the voters.

There are two links to each voter: fetches wait at the leader, and urgent requests must not wait behind them. Every
request has a timeout; a failure is reported at once, because the Raft core decides what to do about it.
"""

import logging
from collections.abc import Callable, Mapping

from sskafka.client.broker_link import BrokerLink, BrokerLinks, LinkTo
from sskafka.client.connection import Address
from sskafka.client.errors import ConnectionRefusedByBrokerError
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.model.ids import ZERO_UUID, Uuid
from sskafka.model.settings import Settings
from sskafka.quorum.control_batches import QuorumSetup
from sskafka.quorum.driver import Done, NoResponse
from sskafka.quorum.raft_messages import response_from_wire, to_wire
from sskafka.raft.messages import FetchRequest, FetchSnapshotRequest, PeerRequest, PeerResponse
from sskafka.raft.voters import VoterSet
from sskafka.wire.apis import API_BY_KEY
from sskafka.wire.schema import Message

_log = logging.getLogger(__name__)


class PeerNetwork:
    def __init__(
        self,
        cluster_id: str,
        link_to: LinkTo[BrokerLink],
        on_other_cluster: Callable[[int], None],
        directory_id: Uuid,
    ) -> None:
        self._cluster_id = cluster_id
        self._directory_id = directory_id
        self._urgent = BrokerLinks(link_to)
        self._patient = BrokerLinks(link_to)
        self._on_other_cluster = on_other_cluster

    def send(self, to: int, request: PeerRequest, done: Done) -> None:
        is_fetch = isinstance(request, FetchRequest | FetchSnapshotRequest)
        link = (self._patient if is_fetch else self._urgent).to(to)
        message = to_wire(request, self._cluster_id, to, self._directory_id)
        key = message.SCHEMA.key
        assert key is not None
        response_class: type[Message] = API_BY_KEY[key].response_class()
        link.ask(message, response_class, lambda outcome: done(self._received(to, request, outcome, link)))

    def close(self) -> None:
        self._urgent.close()
        self._patient.close()

    def _received(
        self, to: int, request: PeerRequest, outcome: Message | Exception, link: BrokerLink
    ) -> PeerResponse | NoResponse:
        name = type(request).__name__
        if isinstance(outcome, Exception):
            _log.debug("%s to node %d failed: %s", name, to, outcome)
            is_refused = isinstance(outcome, ConnectionRefusedByBrokerError)
            return NoResponse.REFUSED if is_refused else NoResponse.LOST
        try:
            return response_from_wire(outcome)
        except KafkaError as error:
            _log.debug("node %d rejected %s: %s", to, name, error)
            if error.code is ErrorCode.INCONSISTENT_CLUSTER_ID:
                self._on_other_cluster(to)
        except Exception as error:  # whatever is wrong with the response: the Raft core asks again
            _log.warning("the response of node %d to %s is not valid: %s", to, name, error)
            link.drop()
        return NoResponse.LOST


def voter_set(settings: Settings, setup: QuorumSetup) -> VoterSet:
    """Return the voters that the metadata log names; if it names none, those of the settings, or else this node."""
    if setup.voters is not None:
        return VoterSet.of(voter.voter_id for voter in setup.voters.voters)
    return VoterSet.of(voter.id for voter in settings.voters) if settings.voters else VoterSet.of([settings["node.id"]])


def voter_addresses(settings: Settings, setup: QuorumSetup) -> Mapping[int, Address]:
    if setup.voters is not None:
        return {
            voter.voter_id: Address(voter.endpoints[0].host, voter.endpoints[0].port)
            for voter in setup.voters.voters
            if voter.endpoints
        }
    return {voter.id: Address(voter.host, voter.port) for voter in settings.voters}


def voter_directories(setup: QuorumSetup) -> Mapping[int, Uuid]:
    """Return the metadata directories of the voters that the log names; a static quorum knows its voters by id."""
    if setup.voters is None:
        return {}
    named = {voter.voter_id: voter.voter_directory_id for voter in setup.voters.voters}
    return {voter_id: directory_id for voter_id, directory_id in named.items() if directory_id != ZERO_UUID}
