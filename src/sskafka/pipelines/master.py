"""Check of Spark's master URL before Java starts: Spark itself needs half a minute to report a mistake in it."""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

CONNECT_TIMEOUT_S = 5.0
DEFAULT_PORTS = {"spark": 7077, "k8s": 443}
FORMS = "local[*], local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT or sc://HOST:PORT"
_LOCAL = re.compile(r"local(\[(\*|\d+)(\s*,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_YARN_CONFIGURATION = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


class MasterError(Exception):
    """Spark cannot use the master; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def check_master(master: str, environment: Mapping[str, str] | None = None) -> None:
    """Raise MasterError if Spark does not know this form of a master, or if nothing listens at its address.

    If there are several addresses, one of them must respond. Addresses of Spark Connect (sc://) are checked when the
    session is created."""
    if _LOCAL.fullmatch(master) or master.startswith("sc://"):
        return
    if master == "yarn":
        _check_yarn(os.environ if environment is None else environment)
    elif master.startswith(("spark://", "k8s://")):
        _check_reachable(master)
    else:
        raise MasterError(f"--master {master!r} is not a master that Spark knows", f"one of {FORMS}")


def _check_yarn(environment: Mapping[str, str]) -> None:
    if not any(environment.get(name) for name in _YARN_CONFIGURATION):
        raise MasterError(
            "Spark finds YARN by Hadoop's configuration files, and neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set",
            "export HADOOP_CONF_DIR=/etc/hadoop/conf",
        )


def _check_reachable(master: str) -> None:
    problems = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
        except OSError as error:
            problems.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    raise MasterError(
        f"no Spark master responds at {master} ({'; '.join(problems)})", "is it started, and is the port right?"
    )


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    kind, _, rest = master.partition("://")
    for part in rest.split(","):
        location = urlsplit(part if "://" in part else f"//{part}")
        try:
            port = location.port or DEFAULT_PORTS[kind]
        except ValueError:
            raise MasterError(f"--master {master!r} has no valid port", f"one of {FORMS}") from None
        if not location.hostname:
            raise MasterError(f"--master {master!r} names no host", f"one of {FORMS}")
        yield location.hostname, port
