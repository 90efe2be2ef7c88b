"""Addresses in settings: listeners and the voters of the metadata quorum.

NAME://host:port        listeners; NAME is mapped to a security protocol; host may be empty or [IPv6]
id@host:port            controller.quorum.voters
host:port               http.listener, adr.listener
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sskafka.model.setting import SettingError, Value, split_list

PLAINTEXT = "PLAINTEXT"
SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Security protocols with their numbers in metadata records."""
PORT_MAX = 65535
HTTP_NAME = "HTTP"
"""The HTTP server in `listener.name.http.` settings, in the audit log and in logs."""

_LISTENER = re.compile(r"(?P<name>[A-Za-z0-9._-]+)://(?P<host>\[[0-9a-fA-F:.%]+\]|[^:/\[\]]*):(?P<port>\d+)")
_VOTER = re.compile(r"(?P<id>\d+)@(?P<host>\[[0-9a-fA-F:.%]+\]|[^:/@\[\]]+):(?P<port>\d+)")
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^:/\[\]]*):(?P<port>\d+)")


class Endpoint(NamedTuple):
    name: str
    host: str
    """Empty: listen on every interface."""
    port: int
    """0: any free port."""
    protocol: str = PLAINTEXT

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")


class Voter(NamedTuple):
    id: int
    host: str
    port: int


def parse_protocol_map(text: str) -> dict[str, str]:
    """Return the security protocol of each listener name, in upper case."""
    protocols: dict[str, str] = {}
    for pair in split_list(text):
        name, _, protocol = pair.partition(":")
        if protocol.strip() not in SECURITY_PROTOCOLS:
            allowed = ", ".join(SECURITY_PROTOCOLS)
            raise SettingError("listener.security.protocol.map", text, f"{pair!r} is not NAME:PROTOCOL with {allowed}")
        protocols[name.strip().upper()] = protocol.strip()
    return protocols


def parse_listeners(key: str, items: Iterable[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    listeners = tuple(_parse_listener(key, item, protocols) for item in items)
    _refuse_repeated(key, [listener.name for listener in listeners], "the name")
    if key == "listeners":
        _refuse_repeated(key, [f"{item.host}:{item.port}" for item in listeners if item.port], "the address")
    return listeners


def parse_voters(items: Iterable[str]) -> tuple[Voter, ...]:
    voters = []
    for item in items:
        match = _VOTER.fullmatch(item)
        if match is None:
            raise SettingError("controller.quorum.voters", item, "allowed is id@host:port")
        port = _port("controller.quorum.voters", item, match["port"])
        voters.append(Voter(int(match["id"]), match["host"].strip("[]"), port))
    _refuse_repeated("controller.quorum.voters", [str(voter.id) for voter in voters], "the id")
    return tuple(voters)


def parse_address(key: str, text: str) -> tuple[str, int] | None:
    """Return host and port of the HTTP or ADR server, or None if the setting is empty: there is no such server."""
    if not text:
        return None
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise SettingError(key, text, "allowed is host:port, :port, or nothing")
    return match["host"].strip("[]"), _port(key, text, match["port"])


def _parse_listener(key: str, item: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _LISTENER.fullmatch(item)
    if match is None:
        raise SettingError(key, item, "allowed is NAME://host:port")
    name = match["name"].upper()
    protocol = protocol_of(name, protocols)
    return Endpoint(name, match["host"].strip("[]"), _port(key, item, match["port"]), protocol)


def protocol_of(name: str, protocols: Mapping[str, str]) -> str:
    """Return the protocol of a listener. Without an entry in the map it is the protocol of that name, or PLAINTEXT."""
    return protocols.get(name, name if name in SECURITY_PROTOCOLS else PLAINTEXT)


def _port(key: str, item: str, text: str) -> int:
    if int(text) > PORT_MAX:
        raise SettingError(key, item, f"the port is above {PORT_MAX}")
    return int(text)


def _refuse_repeated(key: str, values: list[str], what: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise SettingError(key, ",".join(values), f"{what} {value} occurs more than once")


def parse_connection_counts(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`: the connection limits by host or address. Raises ValueError."""
    counts = {}
    for item in split_list(text):
        host, colon, count = item.rpartition(":")
        if not colon or not host or not count.strip().isdecimal():
            raise ValueError(item)
        counts[host.strip().strip("[]")] = int(count)
    return counts


class ConnectionCounts:
    """host:count pairs."""

    def allows(self, value: Value) -> bool:
        try:
            parse_connection_counts(str(value))
        except ValueError:
            return False
        return True

    def kafka_refusal(self, value: Value) -> str:
        return f"Error parsing configuration property 'max.connections.per.ip.overrides': {value}"

    def __str__(self) -> str:
        return "host:count pairs"
