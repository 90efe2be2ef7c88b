"""Brokers of one machine (`--brokers-per-host`) taken together."""

from collections.abc import Iterable
from typing import NamedTuple

from sskafka.client.cluster_status import BrokerStatus
from sskafka.model.host_brokers import machine_id_of


class MachineStatus(NamedTuple):
    host: str
    rack: str | None
    broker_ids: tuple[int, ...]
    fenced: int
    """Number of brokers of the machine that are fenced."""
    leaders: int
    replicas: int
    log_bytes: int


def machines_of(brokers: Iterable[BrokerStatus]) -> list[MachineStatus]:
    """Return the machines with several brokers: those whose ids and host say that they belong together."""
    together: dict[tuple[str, int], list[BrokerStatus]] = {}
    for broker in brokers:
        host = broker.address.rpartition(":")[0]
        together.setdefault((host, machine_id_of(broker.node_id)), []).append(broker)
    return [_machine(host, members) for (host, _), members in together.items() if len(members) > 1]


def _machine(host: str, members: list[BrokerStatus]) -> MachineStatus:
    return MachineStatus(
        host,
        members[0].rack,
        tuple(broker.node_id for broker in members),
        sum(broker.is_fenced for broker in members),
        sum(broker.leaders for broker in members),
        sum(broker.replicas for broker in members),
        sum(usage.log_bytes for broker in members for usage in broker.directories),
    )
