"""TLS between a socket and a connection: the protocol of the socket, and the transport of the connection.

    socket -> shared buffer -> MemoryBIO -> SSLObject.read -> the receive buffer of the connection
    socket <- MemoryBIO <- SSLObject.write <- the responses of the connection

Rules
- Both buffers are shared by all connections of the listener. asyncio's and uvloop's own TLS transports keep 256 KB for
  each connection and call the connection once for every record of 16 KB.
- While a large request arrives, the loop is woken for READ_BYTES or for its rest, not for every record: clients encrypt
  slowly enough to wake it 60 times for a megabyte.
- Steps of handshakes wait for their turn (fair_turns.py), so that thousands of handshakes delay the requests of others
  by a few milliseconds and no more.
- The connection counts from the moment it is accepted. The listener closes connections whose handshake or
  authentication takes too long.
"""

import logging
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from sskafka.model.buffers import Buffer
from sskafka.model.security.certificate_names import MappingRule, distinguished_name, mapped_name
from sskafka.servers.kafka.connection import Connection
from sskafka.servers.kafka.socket_transport import StreamProtocol, Transport

if TYPE_CHECKING:
    from sskafka.servers.kafka.listener import Listener

log = logging.getLogger(__name__)

HANDSHAKE_BYTES_MAX = 128 * 1024
"""Bytes that may wait for a handshake step. OpenSSL takes certificate chains of at most 100 KB."""
RECORD_BYTES = 16 * 1024
ENCRYPTED_CHUNK_BYTES = 256 * 1024
READ_BYTES = 128 * 1024
ENCRYPTED_RECORD_BYTES_MAX = RECORD_BYTES + 512
_ENDED = ssl.MemoryBIO()
"""Replaces both buffers of a connection that is lost: nothing is read from it, nor written to it."""


class TlsTransport(StreamProtocol):
    __slots__ = (
        "_connection",
        "_context",
        "_incoming",
        "_is_established",
        "_is_in_queue",
        "_listener",
        "_low_water",
        "_mapping_rules",
        "_outgoing",
        "_reading_paused",
        "_socket",
        "_tls",
    )

    def __init__(
        self,
        listener: "Listener",
        connection: Connection,
        context: ssl.SSLContext,
        mapping_rules: Sequence[MappingRule] | None,
    ) -> None:
        """`mapping_rules` turn the certificate of a client into its principal; None: SASL names the client."""
        self._listener = listener
        self._connection = connection
        self._context = context
        self._mapping_rules = mapping_rules
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._socket: Transport | None = None
        self._is_established = False
        self._is_in_queue = False
        self._reading_paused = False
        self._low_water = 1

    # -- the protocol of the socket

    def connection_made(self, transport: Transport) -> None:
        self._socket = transport
        self._listener.await_authentication(self._connection)
        self._connection.connection_made(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Free what TLS holds at once: the garbage collector would find the connection minutes later."""
        self._connection.connection_lost(error)
        self._tls = self._socket = None
        self._incoming = self._outgoing = _ENDED

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._listener.encrypted_view

    def buffer_updated(self, nbytes: int) -> None:
        self._incoming.write(self._listener.encrypted_view[:nbytes])
        if self._is_established:
            self._read(nbytes)
        elif self._incoming.pending > HANDSHAKE_BYTES_MAX:
            self._connection.drop("too many bytes before the end of the TLS handshake")
        else:
            self._wait_for_turn()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    # -- the handshake

    def _wait_for_turn(self) -> None:
        if not self._is_in_queue:
            self._is_in_queue = True
            self._listener.turns.put(self)

    def take_turn(self) -> None:
        self._is_in_queue = False
        if self._connection.closed:
            return
        if self._is_established:
            self._read()
        else:
            self._step_handshake()

    def _step_handshake(self) -> None:
        if self._tls is None:
            self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        try:
            self._tls.do_handshake()
            self._is_established = True
            self._name_client(self._tls)
        except ssl.SSLWantReadError:
            self._send_encrypted()
        except (ssl.SSLError, _UnnamedClientError) as error:
            self._send_encrypted()  # the alert that tells the client why
            reason = f"SSL handshake failed: {_reason(error)}"
            self._listener.authentication_failed(self._connection, reason)
            self._connection.refuse(reason)
        else:
            self._send_encrypted()
            self._read()

    def _name_client(self, tls: ssl.SSLObject) -> None:
        if self._mapping_rules is None:
            return
        certificate: Any = tls.getpeercert()
        if certificate:
            name = distinguished_name(certificate.get("subject", ()))
            mapped = mapped_name(self._mapping_rules, name)
            if mapped is None:
                raise _UnnamedClientError(f"no rule of ssl.principal.mapping.rules matches {name}")
            self._connection.principal = f"User:{mapped}"
        self._listener.authenticated(self._connection)

    # -- bytes

    def _read(self, received_bytes: int = 0) -> None:
        """Decrypt what has arrived, and pass it on in pieces as large as the connection's buffer."""
        connection, tls, incoming = self._connection, self._tls, self._incoming
        if tls is None:  # the session has ended
            return
        has_more, is_at_end = True, False
        while has_more and not self._reading_paused and not connection.closed:
            view = connection.get_buffer(-1)
            filled, size = 0, len(view)
            try:
                while filled < size and has_more:
                    count = cast("int", tls.read(size - filled, view[filled:] if filled else view))
                    filled += count
                    is_at_end = not count
                    has_more = not is_at_end and (incoming.pending > 0 or tls.pending() > 0)
            except ssl.SSLWantReadError:
                has_more = False
            except ssl.SSLError as error:
                connection.drop(f"TLS failed: {_reason(error)}")
                break
            if filled:
                connection.buffer_updated(filled)
        if self._outgoing.pending:
            self._send_encrypted()
        if is_at_end:  # the client has sent close_notify and waits for ours
            self.close()
        elif received_bytes >= RECORD_BYTES or self._low_water > 1:  # a slow client would seem to be silent
            self._expect(connection.missing_bytes - incoming.pending - ENCRYPTED_RECORD_BYTES_MAX)

    def _expect(self, missing_bytes: int) -> None:
        """Let the operating system wake the loop when so many bytes have arrived, which the client has announced.

        Encrypted bytes are more than what they contain, so these arrive for sure, or the end of the connection. OpenSSL
        may have the beginning of a record."""
        low_water = max(1, min(missing_bytes, READ_BYTES))
        if low_water != self._low_water and self._socket is not None and not self._socket.is_closing():
            self._low_water = low_water
            own = cast("socket.socket", self._socket.get_extra_info("socket"))
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)

    def _send_encrypted(self) -> None:
        if self._socket is not None and self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    # -- the transport of the connection

    def write(self, data: Buffer, /) -> None:
        self._encrypt(data)
        self._send_encrypted()

    def writelines(self, list_of_data: Sequence[Buffer], /) -> None:
        small: list[Buffer] = []
        size = 0
        for data in list_of_data:
            if len(data) < RECORD_BYTES:
                small.append(data)  # small responses share a record
                size += len(data)
                if size < RECORD_BYTES:
                    continue
            if small:
                self._encrypt(b"".join(small))
                small, size = [], 0
            if len(data) >= RECORD_BYTES:
                self._encrypt(data)
        if small:
            self._encrypt(b"".join(small))
        self._send_encrypted()

    def _encrypt(self, data: Buffer) -> None:
        tls = self._tls
        if tls is None or not self._is_established:
            return
        count = tls.write(data)
        if count == len(data):
            return
        view = memoryview(data)[count:]
        while view:
            view = view[tls.write(view) :]
            if self._outgoing.pending >= ENCRYPTED_CHUNK_BYTES:
                self._send_encrypted()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._socket.get_extra_info(name, default) if self._socket is not None else default

    def is_closing(self) -> bool:
        return self._socket is None or self._socket.is_closing()

    def pause_reading(self) -> None:
        self._reading_paused = True
        if self._socket is not None:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        if self._socket is None:
            return
        self._socket.resume_reading()
        if self._incoming.pending or (self._tls is not None and self._tls.pending()):
            self._wait_for_turn()

    def close(self) -> None:
        """Send close_notify, and close the connection once everything is sent."""
        if self._socket is None:
            return
        if self._is_established and self._tls is not None:
            with suppress(ssl.SSLError):  # the client has not sent close_notify yet; nobody waits for it
                self._tls.unwrap()
            self._send_encrypted()
            self._tls = None  # responses that become ready before the socket is closed are dropped
        self._socket.close()

    def abort(self) -> None:
        if self._socket is not None:
            self._socket.abort()


class _UnnamedClientError(Exception):
    """The certificate is valid, but no rule names its owner."""


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return (error.reason if isinstance(error, ssl.SSLError) else None) or str(error)
