"""The addresses of the brokers' ADR-0011 servers, and a connection that sends raw frames to one."""

import re
import select
import socket
from typing import Self

from broker_process import BrokerProcess
from cluster_processes import ClusterProcesses

from sskafka.model.properties import parse_properties
from sskafka.wire.adr import Answer, Request, decode_answer, encode_request, read_head

TIMEOUT_S = 20


def adr_address(broker: BrokerProcess) -> str:
    """As the banner says, the last one: a broker that was started again has said so twice."""
    return re.findall(r"^  adr +(\S+)$", broker.log, re.MULTILINE)[-1]


def adr_address_in(cluster: ClusterProcesses, node_id: int) -> str:
    return parse_properties((cluster.home(node_id) / "server.properties").read_text())["adr.listener"]


class AdrConnection:
    """A connection that sends whatever it is given."""

    def __init__(self, address: str, source: str = "") -> None:
        """`source`: the address of this host to connect from."""
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S, (source, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def is_readable(self) -> bool:
        """Whether something has come that was not read yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def ask(self, request: Request) -> Answer:
        frame = self.exchange(encode_request(request))
        return decode_answer(frame[4], frame[5:])

    def exchange(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.read_frame()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def end(self) -> None:
        """Nothing more will be sent."""
        self._socket.shutdown(socket.SHUT_WR)

    def read_frame(self) -> bytes:
        head = self._read(5)
        assert len(head) == 5, "the server has closed the connection"
        return head + self._read(read_head(head)[0] - 5)

    def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        data = b""
        while some := self._socket.recv(65536):
            data += some
        return data

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (some := self._socket.recv(size - len(data))):
            data += some
        return data
