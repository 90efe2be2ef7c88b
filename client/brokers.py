"""Common code of the scripts: the list of brokers, and requests to the leader.

The first request goes to the first broker of the list, later ones to the last known leader. A request that was
certainly not applied is sent again:

    connection refused, 421     to the leader that the brokers report (GET /healthcheck), for at most `LOOKING_S`
    503                         to the same broker, for at most `PATIENCE_S`: its partition will soon get a leader

If a response is lost, it is unknown whether the request was applied. Only read-only requests are then repeated.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, TextIO

import httpx

DEFAULT_BROKERS = ",".join(f"{number}@localhost:{8000 + number}" for number in range(1, 6))

CONNECT_S = 1.0
LOOKING_S = 8.0  # less than 10 s, including the connection attempts before and after it
PATIENCE_S = 30.0
ANSWER_S = 30.0
PAUSE_S = 0.05

ID_LIST = re.compile(r'\[((?:\s+"\d+",?)+)\s+\]')


class Broker(NamedTuple):
    id: int
    url: str


class RequestFailedError(Exception):
    """`answer` is what to print: the API's response, if there is one."""

    def __init__(self, answer: Any) -> None:
        super().__init__(answer)
        self.answer = answer


class ArgumentParser(argparse.ArgumentParser):
    """Has the option -b; every error exits with code 1."""

    def __init__(self, description: str) -> None:
        super().__init__(description=description)
        self.add_argument(
            "-b",
            dest="brokers",
            metavar="BROKERS",
            type=parse_brokers,
            default=DEFAULT_BROKERS,
            help="list of brokers, id@host:port,... (default: %(default)s)",
        )

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def parse_brokers(text: str) -> list[Broker]:
    return [_parse_broker(entry.strip()) for entry in text.split(",")]


def _parse_broker(entry: str) -> Broker:
    broker_id, at, address = entry.partition("@")
    host, colon, port = address.rpartition(":")
    if not (at and colon and host and broker_id.isdecimal() and port.isdecimal()):
        raise argparse.ArgumentTypeError(f"{entry!r} is not id@host:port")
    return Broker(int(broker_id), f"http://{address}")


class Limit:
    """A time limit that starts with the first call of `has_passed`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def has_passed(self) -> bool:
        now = time.monotonic()
        self._end = now + self._seconds if self._end is None else self._end
        return now >= self._end


class Cluster:
    def __init__(self, brokers: Sequence[Broker]) -> None:
        self._brokers = {broker.id: broker for broker in brokers}
        self._leader = brokers[0]
        # Connections are not reused: if the broker had closed one, it would be unknown whether a request was applied.
        self._http = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0), trust_env=False)

    def request(
        self, method: str, path: str, body: Any = None, *, changes: bool = True, timeout_s: float | None = ANSWER_S
    ) -> Any:
        """Return the leader's response, None for an empty one; raise RequestFailedError unless it is a success."""
        looking, patience = Limit(LOOKING_S), Limit(PATIENCE_S)
        rejection: Any = None
        while True:
            response = self._send(method, path, body, changes, timeout_s)
            if response is None or response.status_code == httpx.codes.MISDIRECTED_REQUEST:
                rejection = rejection if response is None else _content(response)
                if looking.has_passed():
                    raise RequestFailedError(rejection or {"detail": f"no leader found among {self._names()}"})
                self._leader = self._named_leader() or self._leader
            elif response.status_code == httpx.codes.SERVICE_UNAVAILABLE and not patience.has_passed():
                looking = Limit(LOOKING_S)  # there is a leader: the search for the next one starts over
            elif response.is_success:
                return _content(response)
            else:
                raise RequestFailedError(_content(response))
            time.sleep(PAUSE_S)

    def _send(self, method: str, path: str, body: Any, changes: bool, timeout_s: float | None) -> httpx.Response | None:
        """Return None if the request was not applied, or may be repeated because it is read-only."""
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
        try:
            return self._http.request(method, self._leader.url + path, json=body, timeout=timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.TransportError as error:
            if not changes:
                return None
            detail = f"broker {self._leader.id} did not answer ({error}); it is unknown whether the request was applied"
            raise RequestFailedError({"detail": detail}) from error

    def _named_leader(self) -> Broker | None:
        """Return a leader that some broker reports, other than the one that has just rejected the request."""
        for broker in self._brokers.values():
            leader = self._brokers.get(self._leader_known_to(broker))
            if leader not in {None, self._leader}:
                return leader
        return None

    def _leader_known_to(self, broker: Broker) -> int:
        try:
            answer = self._http.get(f"{broker.url}/healthcheck", timeout=CONNECT_S).json()
            return int(answer["leader_broker_id"])
        except (httpx.TransportError, ValueError, KeyError, TypeError):
            return -1

    def _names(self) -> str:
        return ", ".join(f"{broker.id}@{broker.url.removeprefix('http://')}" for broker in self._brokers.values())


def _content(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        return {"detail": response.text}


def print_json(value: Any, file: TextIO | None = None) -> None:
    """Print indented JSON with lists of broker ids on one line, the format of the lab."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    print(ID_LIST.sub(lambda ids: f"[{' '.join(ids[1].split())}]", text), file=file)


def print_answer(brokers: Sequence[Broker], method: str, path: str, body: Any = None) -> int:
    """Send a request, print the response or error, and return the exit code: all that the topic scripts do."""
    try:
        answer = Cluster(brokers).request(method, path, body, changes=method != "GET")
    except RequestFailedError as error:
        print_json(error.answer)
        return 1
    if answer is not None:
        print_json(answer)
    return 0
