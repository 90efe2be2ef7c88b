"""Ports that nobody listens on, for settings that must name them before anything runs."""

import socket


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports
