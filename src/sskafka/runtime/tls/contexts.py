"""TLS contexts from Kafka's `ssl.` settings, for listeners and for clients, and their reload when files change.

    TlsOptions                  the configured options, compared by value
    server_context, client_context
    ReloadingContext            the context of options; `reload` reads the files again

Only TLS 1.2 and 1.3 are possible. Without a trust store, clients trust the certificate authorities of the system;
listeners trust nobody, so that `ssl.client.auth` needs a trust store.
"""

import logging
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from sskafka.model.values import value
from sskafka.runtime.tls.stores import KeyStore, TlsConfigError, read_key_store, read_trusted_certificates

_log = logging.getLogger(__name__)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_TLS13_CIPHERS = "TLS_"
"""Prefix of OpenSSL's names of TLS 1.3 cipher suites. Python's ssl module cannot select among those."""
_Stamp: TypeAlias = tuple[str, int, int, int]
CheckReplacement: TypeAlias = Callable[["TlsOptions", "TlsOptions"], None]
"""Takes the contents of the stores in use and of those that are to replace them."""


@value
class TlsOptions:
    keystore_location: str | None = None
    keystore_password: str | None = None
    keystore_key: str | None = None
    """A private key in PEM, instead of a file."""
    keystore_certificate_chain: str | None = None
    key_password: str | None = None
    key_location: str | None = None
    """A private key in a file of its own, as librdkafka's `ssl.key.location`."""
    truststore_location: str | None = None
    truststore_password: str | None = None
    truststore_certificates: str | None = None
    client_auth: str = "none"
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    checks_host_name: bool = True

    @property
    def files(self) -> tuple[str, ...]:
        named = (self.keystore_location, self.key_location, self.truststore_location)
        return tuple(path for path in named if path)

    def without_client_certificates(self) -> "TlsOptions":
        return TlsOptions.from_json({**self.to_json(), "client_auth": "none"})

    def to_json(self) -> dict[str, Any]:
        """Return the options, with their secrets, for another process of this node."""
        return {name: getattr(self, name) for name in type(self).__annotations__}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "TlsOptions":
        options: dict[str, Any] = {
            name: tuple(item) if isinstance(item, list) else item for name, item in values.items()
        }
        return cls(**options)

    def __repr__(self) -> str:
        return f"TlsOptions(files={self.files}, client_auth={self.client_auth!r})"


def server_context(options: TlsOptions) -> ssl.SSLContext:
    """Return the context of a listener. Raise TlsConfigError if a listener cannot use these options."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _apply_common(context, options)
    if not _load_own_certificate(context, options):
        raise TlsConfigError("a listener with TLS needs ssl.keystore.location, or ssl.keystore.key and its certificate")
    context.verify_mode = _CLIENT_AUTH[options.client_auth]
    trusted = _trusted(options)
    if trusted is not None:
        _load_trusted(context, trusted)
    elif options.client_auth != "none":
        text = "needs ssl.truststore.location or ssl.truststore.certificates, to verify the certificates of clients"
        raise TlsConfigError(f"ssl.client.auth={options.client_auth} {text}")
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0  # Kafka clients keep connections open; tickets would only add two records to each handshake
    return context


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """Return the context of a client. Raise TlsConfigError if a client cannot use these options."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _apply_common(context, options)
    context.check_hostname = options.checks_host_name
    context.verify_mode = ssl.CERT_REQUIRED
    _load_own_certificate(context, options)
    trusted = _trusted(options)
    if trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _load_trusted(context, trusted)
    return context


class ReloadingContext:
    """The TLS context of options. Reads the files again when they have changed; keeps the old context if that fails."""

    def __init__(
        self,
        options: TlsOptions,
        make: Callable[[TlsOptions], ssl.SSLContext],
        check_replacement: CheckReplacement | None = None,
    ) -> None:
        """Raise TlsConfigError if the options cannot be used.

        `check_replacement` raises TlsConfigError if other contents of the stores may not replace those in use."""
        self._make = make
        self._check_replacement = check_replacement
        self._stamps = _stamps(options)
        self.options = options
        self.context = make(options)
        self.contents = with_contents(options) if check_replacement is not None else options
        """The options with the contents of their files, if replacements are checked."""

    @property
    def is_stale(self) -> bool:
        """Return whether a file has changed since the last attempt to read it."""
        return _stamps(self.options) != self._stamps

    def change_to(self, options: TlsOptions) -> None:
        """Use other options; raise TlsConfigError and keep the old ones if they cannot be used."""
        stamps = _stamps(options)
        context, contents = self.check(options)
        self.options, self.context, self.contents, self._stamps = options, context, contents, stamps

    def check(self, options: TlsOptions) -> tuple[ssl.SSLContext, TlsOptions]:
        """Return context and contents of options that may replace those in use; raise TlsConfigError if they may not.

        This blocks: call it in a thread."""
        context = self._make(options)
        if self._check_replacement is None:
            return context, options
        contents = with_contents(options)
        self._check_replacement(self.contents, contents)
        return context, contents

    def reload(self) -> None:
        """Read the files again. This blocks: call it in a thread."""
        self._stamps = _stamps(self.options)
        try:
            self.context, self.contents = self.check(self.options)
        except TlsConfigError as error:
            _log.error("the old certificates stay in use, not %s: %s", ", ".join(self.options.files), error)
        else:
            _log.info("certificates were read again: %s", ", ".join(self.options.files))


def _stamps(options: TlsOptions) -> tuple[_Stamp, ...]:
    return tuple(_stamp(path) for path in options.files)


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return path, 0, 0, 0
    return path, status.st_mtime_ns, status.st_size, status.st_ino


def _apply_common(context: ssl.SSLContext, options: TlsOptions) -> None:
    versions = [_VERSIONS[name] for name in options.enabled_protocols if name in _VERSIONS]
    if not versions:
        raise TlsConfigError(f"ssl.enabled.protocols has none of {', '.join(_VERSIONS)}")
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    older = [name for name in map(openssl_name, options.cipher_suites) if not name.startswith(_TLS13_CIPHERS)]
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise TlsConfigError(f"ssl.cipher.suites: OpenSSL knows none of {', '.join(older)}") from None


def openssl_name(cipher_suite: str) -> str:
    """Return OpenSSL's name of a TLS 1.2 cipher suite that has Java's (IANA's) name; other names as they are.

    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    if "_WITH_" not in cipher_suite:
        return cipher_suite
    exchange, cipher = cipher_suite.removeprefix("TLS_").split("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    words = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return words.replace("_", "-")


def _load_own_certificate(context: ssl.SSLContext, options: TlsOptions) -> bool:
    store, where = _own_store(options)
    if store is None:
        return False
    try:
        with _private_file(store.pem) as path:
            context.load_cert_chain(path, password=lambda: store.password or "")
    except ssl.SSLError as error:
        reason = error.reason or "the password is wrong, or the key is missing"
        raise TlsConfigError(f"{where}: key and certificate cannot be used: {reason}") from None
    return True


def _own_store(options: TlsOptions) -> tuple[KeyStore | None, str]:
    if options.keystore_key is not None:
        if options.keystore_certificate_chain is None:
            raise TlsConfigError("ssl.keystore.key needs ssl.keystore.certificate.chain")
        pem = f"{options.keystore_key}\n{options.keystore_certificate_chain}\n".encode()
        return KeyStore(pem, options.key_password), "ssl.keystore.key"
    if options.keystore_location is None:
        return None, ""
    store = read_key_store(options.keystore_location, options.keystore_password, options.key_password)
    if options.key_location is not None:
        key = read_key_store(options.key_location, None, options.key_password)
        store = KeyStore(key.pem + b"\n" + store.pem, options.key_password)
    return store, options.keystore_location


def with_contents(options: TlsOptions) -> TlsOptions:
    """Return the options with the contents of their files instead of the names of the files."""
    store, _ = _own_store(options)
    contents = {
        **options.to_json(),
        "keystore_location": None,
        "keystore_password": None,
        "key_location": None,
        "keystore_key": None if store is None else store.pem.decode("ascii", "replace"),
        "keystore_certificate_chain": None if store is None else "",
        "key_password": None if store is None else store.password,
        "truststore_location": None,
        "truststore_password": None,
        "truststore_certificates": _trusted(options),
    }
    return TlsOptions.from_json(contents)


def _trusted(options: TlsOptions) -> str | None:
    if options.truststore_certificates is not None:
        return options.truststore_certificates
    if options.truststore_location is None:
        return None
    return read_trusted_certificates(options.truststore_location, options.truststore_password)


def _load_trusted(context: ssl.SSLContext, pem: str) -> None:
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as error:
        raise TlsConfigError(f"the trusted certificates cannot be used: {error.reason}") from None
    except (TypeError, ValueError) as error:  # characters that are not ASCII, or nothing
        raise TlsConfigError(f"the trusted certificates cannot be used: {error}") from None


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file in memory: ssl loads keys from files alone, and no key must reach a disk."""
    with os.fdopen(os.memfd_create("sskafka-key"), "w+b") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
