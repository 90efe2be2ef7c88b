"""The directory of a local cluster: the files of each broker, and the settings with which it can be started alone.

    DIR/broker-1/server.properties   its settings; `sskafka start` takes this file
                 broker.pid          its process id, while it runs
                 broker.log          its output
                 data/               partitions
                 metadata/           the metadata log
                 restart             `cluster up` starts the broker again when it has stopped, and removes this file
    DIR/cluster.pid                  the process id of `cluster up`, while it runs

If the directory holds a cluster already, only the settings given in the command change.

With several brokers per host, each broker from 1 to N stands for a machine: it is the voter, and further brokers with
its rack (1001, 2001, ... beside broker 1) are only brokers. See model/host_brokers.py.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sskafka.cli.cluster.ports import HOST, OTHER_SERVERS, PortOption, Ports, Server, kafka_server
from sskafka.cli.failures import CommandError
from sskafka.cli.host.directories import partitions_in
from sskafka.cli.start import PID_FILE
from sskafka.lab import LAB_SETTINGS
from sskafka.model.host_brokers import ID_STEP, broker_id_of, is_first_of_machine, machine_id_of
from sskafka.model.ids import uuid_text
from sskafka.model.properties import format_properties, parse_properties
from sskafka.model.settings import Settings
from sskafka.quorum.formatting import random_uuid

# Settings that differ between brokers, or that make them one cluster. They cannot be set for all at once.
OWN_KEYS = frozenset(
    {
        "node.id",
        "broker.id",
        "listeners",
        "advertised.listeners",
        "controller.quorum.voters",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "http.listener",
        "adr.listener",
    }
)

FIRST_ELECTION_DELAY = "controller.quorum.first.election.delay.ms"
_FIRST_ELECTION_STEP_MS = 2000


class BrokerHome(NamedTuple):
    node_id: int
    path: Path

    @property
    def properties_file(self) -> Path:
        return self.path / "server.properties"

    @property
    def exists(self) -> bool:
        return self.properties_file.exists()

    @property
    def log_file(self) -> Path:
        return self.path / "broker.log"

    @property
    def pid_file(self) -> Path:
        return self.path / PID_FILE

    @property
    def restart_file(self) -> Path:
        """Exists while `cluster restart` waits: `cluster up` starts this broker again when it has stopped."""
        return self.path / "restart"

    def pid(self) -> int | None:
        return _pid_in(self.pid_file)

    def read_properties(self) -> dict[str, str]:
        return parse_properties(self.properties_file.read_text())

    def write_properties(self, properties: Mapping[str, str]) -> None:
        """Write the file and rename it into place, because another `start` may be reading it.

        Only its owner can read a file with passwords."""
        self.path.mkdir(parents=True, exist_ok=True)
        partial = self.properties_file.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600 if any(key.endswith("sasl.jaas.config") for key in properties) else 0o666)
        partial.write_text(format_properties(properties))
        partial.replace(self.properties_file)


class LocalCluster(NamedTuple):
    directory: Path
    homes: tuple[BrokerHome, ...]
    """The first brokers of all machines, then the second ones, and so on."""
    is_new: bool

    @property
    def supervisor_file(self) -> Path:
        """Holds the process id of `cluster up`, while it runs."""
        return self.directory / "cluster.pid"

    def supervisor_pid(self) -> int | None:
        return _pid_in(self.supervisor_file)

    @property
    def node_ids(self) -> list[int]:
        return [home.node_id for home in self.homes]

    @property
    def has_several_per_host(self) -> bool:
        return not all(map(is_first_of_machine, self.node_ids))

    def first_home(self, home: BrokerHome) -> BrokerHome:
        """Return the home of the first broker on the same machine."""
        return next(one for one in self.homes if one.node_id == machine_id_of(home.node_id))


def _pid_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None


def is_running(pid: int | None) -> bool:
    """Return whether there is a process with this id that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def find_cluster(
    directory: Path, count: int | None, default_count: int, brokers_per_host: int | None = None
) -> LocalCluster:
    """Return the cluster in the directory, or a new one of `count` machines with a broker, or several, each."""
    directory = directory.resolve()
    found = sorted(int(file.parent.name.removeprefix("broker-")) for file in _properties_files(directory))
    machines = [node_id for node_id in found if is_first_of_machine(node_id)]
    if found and count not in {None, len(machines)}:
        raise CommandError(
            f"{directory} holds a cluster of {len(machines)} brokers",
            f"omit -n to start that cluster, or use --dir {directory}-{count} for a new one of {count} brokers",
        )
    machines = machines or list(range(1, (count or default_count) + 1))
    if len(machines) >= ID_STEP:
        raise CommandError(f"a cluster of {len(machines)} brokers is too large", f"use fewer than {ID_STEP}")
    if found and brokers_per_host is None:
        return LocalCluster(directory, _homes(directory, found), is_new=False)
    node_ids = [broker_id_of(machine, number) for number in range(brokers_per_host or 1) for machine in machines]
    for home in _homes(directory, [node_id for node_id in found if node_id not in node_ids]):
        _check_empty(home)
    return LocalCluster(directory, _homes(directory, node_ids), is_new=not found)


def _check_empty(home: BrokerHome) -> None:
    """Raise CommandError if a broker that is to be left out holds partitions."""
    partitions = partitions_in(home.path / "data")
    if partitions:
        raise CommandError(
            f"broker {home.node_id} holds {partitions} partitions in {home.path}, and this --brokers-per-host would "
            "leave it out",
            "leave out --brokers-per-host, and move the partitions first "
            f"(`sskafka broker decommission {home.node_id} --wait 0`)",
        )


def _properties_files(directory: Path) -> list[Path]:
    return [file for file in directory.glob("broker-*/server.properties") if file.parent.name[7:].isdecimal()]


def _homes(directory: Path, node_ids: Sequence[int]) -> tuple[BrokerHome, ...]:
    return tuple(BrokerHome(node_id, directory / f"broker-{node_id}") for node_id in node_ids)


def wanted_ports(cluster: LocalCluster, options: Mapping[Server, PortOption]) -> list[Ports]:
    """Return the ports of each broker, 0 for any: as requested, as before, or counted from the default."""
    return [_ports_of(cluster, number, options) for number in range(len(cluster.homes))]


def _ports_of(cluster: LocalCluster, number: int, options: Mapping[Server, PortOption]) -> Ports:
    home = cluster.homes[number]
    earlier = home.read_properties() if home.exists else None
    first = cluster.homes[0].read_properties() if cluster.homes[0].exists else None
    ports = {}
    for server, option in options.items():
        port: int | None = option.port(server, number)
        if option.first_port is None and earlier is not None:
            port = server.port_in(earlier)
        elif option.first_port is None and first is not None:  # a broker that is added counts on from the first one
            first_port = server.port_in(first)
            port = None if first_port is None else first_port + number
        if option.is_open and port is not None:
            ports[server] = port
    return ports


def write_settings(
    cluster: LocalCluster,
    ports: Sequence[Ports],
    overrides: Mapping[str, str],
    *,
    lab: bool,
    security_of: Callable[[BrokerHome], Mapping[str, str]] | None = None,
) -> list[str]:
    """Write each broker's server.properties. Return warnings about the settings.

    `security_of`: the settings of a broker with TLS and SASL, which contain secrets."""
    cluster_id = uuid_text(random_uuid(os.urandom))
    voters = ",".join(
        f"{home.node_id}@{HOST}:{own[kafka_server(own)]}"
        for home, own in zip(cluster.homes, ports, strict=True)
        if is_first_of_machine(home.node_id)
    )
    if "topics.file" in overrides:  # a broker that is restarted alone may have another working directory
        overrides = {**overrides, "topics.file": str(Path(overrides["topics.file"]).resolve())}
    texts = []
    for home, own_ports in zip(cluster.homes, ports, strict=True):
        stated = _first_settings(home, cluster_id) if cluster.is_new else _earlier_settings(cluster, home)
        if security_of is not None:
            stated |= security_of(home)
        if cluster.has_several_per_host:
            stated["broker.rack"] = f"host-{machine_id_of(home.node_id)}"
        stated |= {**_own_settings(home, own_ports, voters), **(LAB_SETTINGS if lab else {}), **overrides}
        texts.append(stated)
    warnings = Settings.resolve(texts[0], os.environ).warnings
    for home, stated in zip(cluster.homes, texts, strict=True):
        home.write_properties(stated)
    return warnings


def _first_settings(home: BrokerHome, cluster_id: str) -> dict[str, str]:
    """Return the settings of a new cluster. Broker 1 becomes a candidate first, for a fast start."""
    delay_ms = (machine_id_of(home.node_id) - 1) * _FIRST_ELECTION_STEP_MS
    return {"cluster.id": cluster_id, FIRST_ELECTION_DELAY: str(delay_ms)}


def _earlier_settings(cluster: LocalCluster, home: BrokerHome) -> dict[str, str]:
    """Return the settings that the broker had. A broker that is added has those of its machine's first one."""
    return (home if home.exists else cluster.first_home(home)).read_properties()


def _own_settings(home: BrokerHome, ports: Ports, voters: str) -> dict[str, str]:
    servers = (kafka_server(ports), *OTHER_SERVERS)
    addresses = {server.setting: server.address(ports.get(server)) for server in servers}
    return addresses | {
        "process.roles": "broker,controller" if is_first_of_machine(home.node_id) else "broker",
        "node.id": str(home.node_id),
        "controller.quorum.voters": voters,
        "log.dirs": str(home.path / "data"),
        "metadata.log.dir": str(home.path / "metadata"),
    }
