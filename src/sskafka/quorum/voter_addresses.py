"""Who the voters of the metadata quorum are, and where they are reached."""

from collections.abc import Mapping

from sskafka.client.connection import Address
from sskafka.model.ids import ZERO_UUID, Uuid
from sskafka.model.settings import Settings
from sskafka.quorum.control_batches import QuorumSetup
from sskafka.raft.voters import VoterSet


def voter_set(settings: Settings, setup: QuorumSetup) -> VoterSet:
    """Those that the log names, where it names any; else those of the settings; else this node alone."""
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
