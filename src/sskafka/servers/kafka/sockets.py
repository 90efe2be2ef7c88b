"""Listening sockets. They are bound before anything else starts, so that a taken port stops the start early."""

import errno
import socket

from sskafka.model.listeners import Endpoint


class PortTakenError(OSError):
    """Another program listens on the address of a listener."""


def bind(listener: Endpoint) -> socket.socket:
    everywhere = not listener.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if everywhere or ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if everywhere:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # every interface, IPv4 included
        bound.bind((listener.host, listener.port))
    except OSError as error:
        bound.close()
        raise _explained(listener, error) from error
    bound.setblocking(False)
    return bound


def bind_server(setting: str, host: str, port: int) -> socket.socket:
    """Bind the socket of a server with a setting of its own, such as `adr.listener`."""
    try:
        return bind(Endpoint(setting, host, port))
    except PortTakenError as error:
        text = f"port {port} is taken: another program listens on {host or '*'}:{port}; stop it, or select "
        advice = f"another port (--set {setting}={host}:PORT, 0 for any free one) or no server (--set {setting}=)"
        raise PortTakenError(error.errno, text + advice) from error


def _explained(listener: Endpoint, error: OSError) -> OSError:
    address = f"{listener.host or '*'}:{listener.port}"
    if error.errno == errno.EADDRINUSE:
        return PortTakenError(
            error.errno,
            f"port {listener.port} is taken: another program listens on {address}; stop it, or give listener "
            f"{listener.name} another port (listeners={listener.name}://{listener.host}:PORT)",
        )
    return OSError(error.errno, f"listener {listener.name} cannot bind {address}: {error.strerror}")
