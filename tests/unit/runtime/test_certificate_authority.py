"""The certificates of the private authority are accepted by TLS libraries, and only their owner can read the files."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sskafka.runtime.tls.authority import CertificateAuthority, read_certificates, write_private

NOW = datetime.now(UTC).replace(microsecond=0)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> "dict[str, object]":
    """Shake hands in memory; return the certificate that the server saw."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    at_server = server.wrap_bio(to_server, to_client, server_side=True)
    at_client = client.wrap_bio(to_client, to_server, server_hostname=host)
    done: set[ssl.SSLObject] = set()
    while len(done) < 2:
        for side in (at_client, at_server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
    return dict(at_server.getpeercert() or {})


def contexts(directory: Path, server_file: str, client_file: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(directory / "ca.pem"))
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(directory / server_file)
    client = ssl.create_default_context(cafile=str(directory / "ca.pem"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_cert_chain(directory / client_file)
    return server, client


def test_nodes_and_users_shake_hands(tmp_path: Path) -> None:
    CertificateAuthority.create("Test CA", NOW).save(tmp_path)
    authority = CertificateAuthority.load(tmp_path)
    write_private(tmp_path / "node.pem", authority.issue_node("node-1", ["kafka.example", "10.0.0.1"], NOW))
    write_private(tmp_path / "alice.pem", authority.issue_user("alice", NOW))
    server, client = contexts(tmp_path, "node.pem", "alice.pem")
    for host in ("kafka.example", "10.0.0.1"):
        assert handshake(server, client, host)["subject"] == ((("commonName", "alice"),),)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'other\.example'"):
        handshake(server, client, "other.example")
    server, client = contexts(tmp_path, "alice.pem", "node.pem")  # a user's certificate is none of a server
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client, "alice")


def test_private_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "certs"
    authority = CertificateAuthority.create("Test CA", NOW)
    authority.save(directory)
    path = directory / "alice.pem"
    path.write_text("an older file")
    path.chmod(0o644)
    write_private(path, authority.issue_user("alice", NOW))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}
    assert modes == {"ca.pem": 0o644, "ca-key.pem": 0o600, "alice.pem": 0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_file_tells_its_certificates(tmp_path: Path) -> None:
    authority = CertificateAuthority.create("Test CA", NOW, days=10)
    path = tmp_path / "node.pem"
    write_private(path, authority.issue_node("node-1", ["localhost", "::1"], NOW, days=2))
    leaf, root = read_certificates(path)
    assert (leaf.subject, leaf.issuer, leaf.names) == ("CN=node-1", "CN=Test CA", ("localhost", "::1"))
    assert (leaf.not_after, leaf.is_ca, leaf.has_key) == (NOW + timedelta(days=2), False, True)
    assert (root.subject, root.is_ca, root.has_key) == ("CN=Test CA", True, False)
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(ValueError, match="has no certificates"):
        read_certificates(tmp_path / "empty.pem")
