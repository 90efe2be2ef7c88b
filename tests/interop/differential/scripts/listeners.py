"""Listeners that are added and removed while the broker runs, and the responses that clients get there."""

import time
from collections.abc import Callable
from typing import Any

from benchmarks.brokers import HOST, free_ports

from differential.exchange import Connection, Dropped
from differential.messages import build
from differential.scripts.batches import batch
from differential.scripts.common import create_topic, fill, produce_fields
from differential.scripts.fetch import fetch_fields
from differential.session import Session, is_encodable

LISTENERS, PROTOCOLS = "listeners", "listener.security.protocol.map"
MAP = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
BROKER, SET, DELETE = 4, 0, 1
APPLIED_SECONDS_MAX = 10.0


def _described(session: Session) -> str:
    resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": [LISTENERS]}
    value: str = session.look("DescribeConfigs", resources=[resource]).results[0].configs[0].value
    return value


def described_as(session: Session, note: str, condition: Callable[[str], bool]) -> None:
    """Record the setting once it is as it should be: Apache Kafka applies it a moment after it has answered."""
    deadline = time.monotonic() + APPLIED_SECONDS_MAX
    while not condition(_described(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    session.record("the setting listeners", 0, note, None, Dropped(_described(session)))


def alter(session: Session, note: str, *, to: str = "1", only_check: bool = False, **configs: str | None) -> None:
    """Set `listeners` and `map`, or delete them where they are None."""
    names = {"listeners": LISTENERS, "map": PROTOCOLS}
    wanted = [
        {"name": names[key], "config_operation": DELETE if value is None else SET, "value": value}
        for key, value in configs.items()
    ]
    resource = {"resource_type": BROKER, "resource_name": to, "configs": wanted}
    session.ask("IncrementalAlterConfigs", resources=[resource], validate_only=only_check, note=note)


def connected(port: int) -> Connection:
    """A connection to a listener, as soon as it is open."""
    deadline = time.monotonic() + APPLIED_SECONDS_MAX
    while True:
        try:
            return Connection(HOST, port)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def refusals(session: Session) -> None:
    """None of these changes anything."""
    now = _described(session)
    plain, controller = now.split(",")
    port, other = free_ports(2)
    alter(session, "a name without a protocol", listeners=f"{now},EXTRA://{HOST}:{port}")
    both = f"{MAP},EXTRA:PLAINTEXT,OTHER:PLAINTEXT"
    cases = {
        "a name twice": (f"{now},EXTRA://{HOST}:{port},EXTRA://{HOST}:{other}", both),
        "a port twice": (f"{now},EXTRA://{HOST}:{port},OTHER://{HOST}:{port}", both),
        "no listener": ("garbage", both),
        "empty": ("", both),
        "an unknown protocol": (f"{now},EXTRA://{HOST}:{port}", f"{MAP},EXTRA:NONE"),
        "without the controller's": (plain, MAP),
        "without the advertised one": (controller, MAP),
        "another name for it": (now.replace("PLAINTEXT:", "EXTRA:"), both),
        "another protocol": (now, "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"),
        "a map without the controller's": (now, "PLAINTEXT:NONE"),
    }
    for note, (listeners, protocols) in cases.items():
        alter(session, note, listeners=listeners, map=protocols)
    alter(session, "for all brokers", to="", listeners=now)
    alter(session, "the map for all brokers", to="", map=both)
    alter(session, "only checked", only_check=True, listeners=f"{now},EXTRA://{HOST}:{port}", map=both)
    alter(session, "the same", listeners=now, map=MAP)
    alter(session, "more names in the map", map=both)
    alter(session, "neither", listeners=None, map=None)
    described_as(session, "after refusals", lambda value: value == now)


def served_while_running(session: Session) -> None:
    """The brokers of the scripts have no `advertised.listeners`: what is added counts as advertised and must stay."""
    topic = session.name("topic")
    topic_id = create_topic(session, topic)
    fill(session, topic, topic_id, "a", "b")
    now = _described(session)
    names = [part.partition(":")[0] for part in now.split(",")]
    name = f"X{session.name('x')}".upper()
    port, other = free_ports(2)
    protocols = ",".join(f"{one}:PLAINTEXT" for one in (*names, name))
    alter(session, "added", listeners=f"{now},{name}://{HOST}:{port}", map=protocols)
    described_as(session, "with a new one", lambda value: name in value)
    with connected(port) as connection:
        asked_there(session, connection, topic, topic_id)
        alter(session, "another port", listeners=f"{now},{name}://{HOST}:{other}", map=protocols)
        alter(session, "without it", listeners=now)
        alter(session, "deleted", listeners=None, map=None)
        is_served = not isinstance(connection.ask(build("ApiVersions"), 0), Dropped)
        session.record("the new listener", 0, "is still there", None, Dropped(str(is_served)))
    described_as(session, "with another port", lambda value: str(other) in value)


def asked_there(session: Session, connection: Connection, topic: str, topic_id: bytes) -> None:
    """The new listener is not advertised, but it serves every request."""
    requests: dict[str, dict[str, Any]] = {
        "Metadata": {"topics": [{"name": topic}], "allow_auto_topic_creation": False},
        "DescribeTopicPartitions": {"topics": [{"name": topic}], "response_partition_limit": 10},
        "DescribeCluster": {},
        "FindCoordinator": {"key_type": 0, "coordinator_keys": ["any"], "key": "any"},
        "Produce": produce_fields(topic, topic_id, batch("c")),
        "Fetch": fetch_fields(topic, topic_id, {"partition": 0}),
    }
    for api, fields in requests.items():
        for version in session.versions(api):
            message = build(api, **fields)
            if is_encodable(message, version):
                session.record(api, version, "at the new listener", message, connection.ask(message, version))
