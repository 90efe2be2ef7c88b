"""Whether new key and trust stores may replace those in use: the rules of Apache Kafka.

    names         The new certificate has the distinguished name of the old one and all of its alternative names. So the
                  node keeps its principal and its host names. ssl.allow.dn.changes and ssl.allow.san.changes lift this.
    handshakes    Between nodes, both ends of a connection have such stores: a server and a client with the new stores
                  trust each other, and each of them trusts a node that still has the old ones.

Apache Kafka cannot replace a certificate that has expired, because a handshake with it fails. Here the old stores count
only if they still work. The stores are compared by their contents, because a new file may have the name of the old one.
"""

import ssl
from typing import Any

from sskafka.model.security.certificate_names import distinguished_name
from sskafka.model.values import value
from sskafka.runtime.tls.contexts import TlsOptions, client_context, server_context
from sskafka.runtime.tls.stores import TlsConfigError

_STEPS_MAX = 20
"""A handshake needs a few messages in each direction."""
_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL: names are read from expired certificates, too."""


@value
class ReplacementRules:
    is_between_nodes: bool
    allows_dn_changes: bool = False
    allows_san_changes: bool = False

    def check(self, old: TlsOptions, new: TlsOptions) -> None:
        """Raise TlsConfigError, with the reason, if stores with these contents may not be replaced.

        This blocks for some milliseconds: call it in a thread."""
        if not (_has_key(old) and _has_key(new)):
            return
        self._check_names(own_certificate(old), own_certificate(new))
        if self.is_between_nodes:
            _check_handshakes(old, new)

    def _check_names(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        was, becomes = distinguished_name(old["subject"]), distinguished_name(new["subject"])
        if was.casefold() != becomes.casefold() and not self.allows_dn_changes:
            text = f"Keystore DistinguishedName does not match: existing={was}, new={becomes}"
            raise TlsConfigError(f"{text}; set ssl.allow.dn.changes=true to allow this")
        missing = set(old.get("subjectAltName", ())) - set(new.get("subjectAltName", ()))
        if missing and not self.allows_san_changes:
            names = ", ".join(sorted(f"{kind}:{name}" for kind, name in missing))
            text = f"Keystore SubjectAltNames do not match: the new certificate has no {names}"
            raise TlsConfigError(f"{text}; set ssl.allow.san.changes=true to allow this")


def _check_handshakes(old: TlsOptions, new: TlsOptions) -> None:
    old_works = _problem(server=old, client=old) is None
    if not old_works and new.truststore_certificates is None:
        return  # nodes do not connect with these stores
    _expect(server=new, client=new, what="nodes with the new stores do not trust each other")
    if old_works:
        _expect(server=new, client=old, what="nodes with the old stores do not trust the new ones")
        _expect(server=old, client=new, what="a node with the new stores does not trust those with the old ones")


def _expect(*, server: TlsOptions, client: TlsOptions, what: str) -> None:
    problem = _problem(server=server, client=client)
    if problem is not None:
        raise TlsConfigError(f"{what}: {problem}")


def _problem(*, server: TlsOptions, client: TlsOptions) -> str | None:
    """Return why a handshake between nodes fails; None if it succeeds. Host names are not checked, as in Kafka."""
    connecting = client_context(client)
    connecting.check_hostname = False
    try:
        shake_hands(server_context(server), connecting)
    except ssl.SSLError as error:
        return getattr(error, "verify_message", "") or error.reason or str(error)
    return None


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Complete a TLS handshake in memory and return the client's end; raise ssl.SSLError if it fails."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_side=False),
    )
    waiting = [ends[1], ends[0]]
    for _ in range(_STEPS_MAX):
        waiting = [end for end in waiting if not _step(end)]
        if not waiting:
            return ends[1]
    raise ssl.SSLError("the handshake does not end")


def _step(end: ssl.SSLObject) -> bool:
    """Continue a handshake; return whether it is complete."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def own_certificate(options: TlsOptions) -> dict[str, Any]:
    """Return subject and alternative names of the certificate in a key store, as `getpeercert` has them.

    Python decodes verified certificates alone: a second handshake trusts what the first one has received."""
    server = server_context(options.without_client_certificates())
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    der = shake_hands(server, trusting).getpeercert(binary_form=True)
    assert der is not None, "a server has a certificate"
    trusting.load_verify_locations(cadata=der)
    trusting.verify_mode = ssl.CERT_REQUIRED
    trusting.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    decoded: dict[str, Any] | None = shake_hands(server, trusting).getpeercert()
    assert decoded is not None, "it is verified"
    return decoded


def _has_key(options: TlsOptions) -> bool:
    return options.keystore_key is not None
