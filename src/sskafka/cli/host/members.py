"""The settings of each broker of a machine, derived from those of the machine.

All brokers share the settings of the machine. What differs:

    node.id                    1, 1001, 2001, ... (model/host_brokers.py)
    ports                      every listener has a range: the port that is configured, and the ones after it
    log.dirs, metadata.log.dir a subdirectory for each broker after the first (directories.py)
    process.roles              the brokers after the first are no voters; their voter is the first, or those configured
    broker.rack                the same for all, by default the name of the machine: replicas of a partition are spread
                               over racks, so that they are not on the same machine
"""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sskafka.cli.failures import CommandError
from sskafka.cli.host.directories import directory_of
from sskafka.cli.usage import UsageError
from sskafka.model.host_brokers import ID_STEP, broker_id_of
from sskafka.model.listeners import Endpoint, parse_address
from sskafka.model.settings import Settings
from sskafka.quorum.formatting import cluster_id_for
from sskafka.storage.disk import Disk
from sskafka.storage.meta_properties import read_meta_properties

OTHER_LISTENERS = ("http.listener", "adr.listener")
_NO_TIMEOUT_MS = 2**31 - 1
_EVERY_INTERFACE = {"", "0.0.0.0", "::"}


class Member(NamedTuple):
    """One broker of the machine, before its ports are bound."""

    node_id: int
    home: str
    """Directory of its pid file."""
    listeners: tuple[Endpoint, ...]
    """What it listens on, HTTP and ADR included, by the name of the listener or of the setting."""
    settings: Mapping[str, str]
    """Its own settings, without the addresses."""

    def overrides(self, ports: Mapping[str, int]) -> dict[str, str]:
        """Return the settings that this broker has instead of the machine's, with the ports that were bound."""
        bound = [listener._replace(port=ports[listener.name]) for listener in self.listeners]
        kafka = [listener for listener in bound if listener.name not in OTHER_LISTENERS]
        others = {listener.name: _address(listener) for listener in bound if listener.name in OTHER_LISTENERS}
        return {**self.settings, "listeners": _listeners_text(kafka), **others}


def plan_members(machine: Settings, count: int, disk: Disk) -> list[Member]:
    """Return the brokers of a machine, the first one first. Raise CommandError if the settings leave no room."""
    _check_machine(machine, count)
    existing = read_meta_properties(disk, machine.metadata_directory)
    known = machine["cluster.id"] or (existing.cluster_id if existing is not None else None)
    cluster_id = known or cluster_id_for(machine, os.urandom)
    return [_member(machine, number, cluster_id) for number in range(count)]


def voters_of(machine: Settings, first_ports: Mapping[str, int]) -> dict[str, str]:
    """Return the settings by which the brokers after the first one find the first: the voter of the machine."""
    if machine.voters or machine["controller.quorum.bootstrap.servers"]:
        return {}
    endpoint = machine.controller_listeners[0] if machine.controller_listeners else machine.inter_broker_endpoint
    host = "localhost" if endpoint.host in _EVERY_INTERFACE else endpoint.host
    voter = f"{machine['node.id']}@{_host_text(host)}:{first_ports[endpoint.name]}"
    # The supervisor sees it if the first broker ends. Until then the others wait, however long it recovers its logs.
    return {
        "controller.quorum.voters": voter,
        "initial.broker.registration.timeout.ms": str(_NO_TIMEOUT_MS),
    }


def _check_machine(machine: Settings, count: int) -> None:
    if "broker" not in machine["process.roles"]:
        raise UsageError("--brokers-per-host is for brokers; a node that is only a controller uses one core")
    if count > 1 and machine["node.id"] >= ID_STEP:
        raise CommandError(
            f"node.id={machine['node.id']} leaves no ids for the other brokers of this machine, which have "
            f"node.id + {ID_STEP}, node.id + {2 * ID_STEP}, ...",
            f"use a node.id below {ID_STEP} for the machine",
        )
    ports = sorted({listener.port: listener for listener in _all_listeners(machine) if listener.port}.items())
    for (port, listener), (next_port, following) in pairwise(ports):
        if next_port - port < count:
            raise CommandError(
                f"{count} brokers need {count} ports for each listener, but {listener.name} has port {port} and "
                f"{following.name} port {next_port}",
                f"leave at least {count - 1} ports free between them",
            )


def _all_listeners(machine: Settings) -> tuple[Endpoint, ...]:
    addresses = ((name, parse_address(name, str(machine[name]))) for name in OTHER_LISTENERS)
    others = (Endpoint(name, *address) for name, address in addresses if address is not None)
    return (*machine.listeners, *machine.controller_listeners, *others)


def _member(machine: Settings, number: int, cluster_id: str) -> Member:
    node_id = broker_id_of(machine["node.id"], number)
    controllers = {listener.name for listener in machine.controller_listeners}
    listeners = tuple(
        _shifted(listener, number)
        for listener in _all_listeners(machine)
        if number == 0 or listener.name not in controllers
    )
    own = {
        "node.id": str(node_id),
        "cluster.id": cluster_id,
        "broker.rack": machine["broker.rack"] or machine.host_name,
        **_advertised(machine, number),
        **(_of_further_broker(machine, node_id) if number else {}),
    }
    return Member(node_id, directory_of(machine.data_directories[0], node_id), listeners, own)


def _of_further_broker(machine: Settings, node_id: int) -> dict[str, str]:
    def below(path: str) -> str:
        return directory_of(path, node_id)

    own = {
        "process.roles": "broker",
        "log.dirs": ",".join(map(below, machine.data_directories)),
        "metadata.log.dir": below(machine.metadata_directory),
    }
    cordoned = [path if path == "*" else below(path) for path in machine["cordoned.log.dirs"]]
    if cordoned:
        own["cordoned.log.dirs"] = ",".join(cordoned)
    if machine["audit.log"]:
        own["audit.log"] = f"{machine['audit.log']}.{node_id}"
    return own


def _advertised(machine: Settings, number: int) -> dict[str, str]:
    if machine["advertised.listeners"] is None:
        return {}
    advertised = [_shifted(listener, number) for listener in machine.advertised_listeners]
    return {"advertised.listeners": _listeners_text(advertised)}


def _shifted(listener: Endpoint, number: int) -> Endpoint:
    return listener._replace(port=listener.port + number) if listener.port else listener


def _listeners_text(listeners: Sequence[Endpoint]) -> str:
    return ",".join(f"{listener.name}://{_address(listener)}" for listener in listeners)


def _address(listener: Endpoint) -> str:
    return f"{_host_text(listener.host)}:{listener.port}"


def _host_text(host: str) -> str:
    return f"[{host}]" if ":" in host else host
