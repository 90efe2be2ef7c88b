"""Keys and certificates in all supported formats, rejected files, and the reload of changed files."""

import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from tests.support.certificates import Certificates

from sskafka.runtime.tls.contexts import (
    ReloadingContext,
    TlsOptions,
    client_context,
    openssl_name,
    server_context,
)
from sskafka.runtime.tls.stores import TlsConfigError

PASSWORD = "store-secret"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def pkcs12_stores(certificates: Certificates, directory: Path) -> tuple[Path, Path]:
    pem = certificates.issue("node.pem", "localhost").read_bytes()
    encryption = BestAvailableEncryption(PASSWORD.encode())
    key, chain = load_pem_private_key(pem, None), x509.load_pem_x509_certificates(pem)
    key_store, trust_store = directory / "node.p12", directory / "trust.p12"
    key_store.write_bytes(pkcs12.serialize_key_and_certificates(b"n", key, chain[0], chain[1:], encryption))  # type: ignore[arg-type]
    authority = x509.load_pem_x509_certificate(certificates.ca.read_bytes())
    trust_store.write_bytes(pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"ca")], encryption))
    return key_store, trust_store


def shakes_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Return whether a client with `client` trusts a server with `server`, without sockets."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    ]
    done = 0
    for _ in range(10):
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
                done += 1
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return done == 2


def test_pkcs12_stores(certificates: Certificates, tmp_path: Path) -> None:
    key_store, trust_store = map(str, pkcs12_stores(certificates, tmp_path))
    options = TlsOptions(
        keystore_location=key_store,
        keystore_password=PASSWORD,
        truststore_location=trust_store,
        truststore_password=PASSWORD,
    )
    assert shakes_hands(server_context(options), client_context(options))
    with pytest.raises(TlsConfigError, match="its password is wrong") as caught:
        server_context(TlsOptions(keystore_location=key_store, keystore_password="wrong-secret"))
    assert "wrong-secret" not in str(caught.value)


def test_pem_in_settings_and_an_encrypted_key(certificates: Certificates) -> None:
    pem = certificates.issue("node.pem", "localhost").read_bytes()
    key = load_pem_private_key(pem, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
    )
    chain = pem[pem.index(b"-----BEGIN CERTIFICATE") :].decode()
    trusted = certificates.ca.read_text()
    options = TlsOptions(
        keystore_key=key.decode(),
        keystore_certificate_chain=chain,
        key_password=PASSWORD,
        truststore_certificates=trusted,
    )
    assert shakes_hands(server_context(options), client_context(options))
    with pytest.raises(TlsConfigError, match="cannot be used"):
        server_context(TlsOptions(keystore_key=key.decode(), keystore_certificate_chain=chain, key_password="x"))
    assert PASSWORD not in repr(options)


def test_java_key_stores_are_refused_with_the_command_that_converts_them(tmp_path: Path) -> None:
    path = tmp_path / "node.jks"
    path.write_bytes(bytes.fromhex("feedfeed00000002"))
    with pytest.raises(TlsConfigError, match=r"keytool -importkeystore .*node\.p12 -deststoretype PKCS12"):
        server_context(TlsOptions(keystore_location=str(path)))


def test_what_a_listener_cannot_use(certificates: Certificates) -> None:
    key_store = str(certificates.issue("node.pem", "localhost"))
    with pytest.raises(TlsConfigError, match=r"needs ssl\.keystore\.location"):
        server_context(TlsOptions())
    with pytest.raises(TlsConfigError, match=r"needs ssl\.truststore\.location"):
        server_context(TlsOptions(keystore_location=key_store, client_auth="required"))
    with pytest.raises(TlsConfigError, match="cannot be read"):
        server_context(TlsOptions(keystore_location=key_store + ".gone"))
    with pytest.raises(TlsConfigError, match="OpenSSL knows none"):
        server_context(TlsOptions(keystore_location=key_store, cipher_suites=("TLS_NULL_WITH_NOTHING",)))


def test_clients_check_the_host_name_unless_told_otherwise(certificates: Certificates) -> None:
    server = server_context(TlsOptions(keystore_location=str(certificates.issue("other.pem", "elsewhere.example"))))
    trusted = str(certificates.ca)
    assert not shakes_hands(server, client_context(TlsOptions(truststore_location=trusted)))
    assert shakes_hands(server, client_context(TlsOptions(truststore_location=trusted, checks_host_name=False)))


def test_protocol_versions(certificates: Certificates) -> None:
    key_store, trusted = str(certificates.issue("node.pem", "localhost")), str(certificates.ca)
    old = TlsOptions(keystore_location=key_store, truststore_location=trusted, enabled_protocols=("TLSv1.2",))
    new = TlsOptions(keystore_location=key_store, truststore_location=trusted, enabled_protocols=("TLSv1.3",))
    assert not shakes_hands(server_context(new), client_context(old))
    assert shakes_hands(server_context(old), client_context(old))


def test_changed_files_are_read_again_and_bad_ones_change_nothing(certificates: Certificates, tmp_path: Path) -> None:
    key_store = certificates.issue("node.pem", "localhost")
    source = ReloadingContext(TlsOptions(keystore_location=str(key_store)), server_context)
    assert not source.is_stale
    first = source.context
    certificates.issue("node.pem", "localhost")
    assert source.is_stale
    source.reload()
    assert (source.is_stale, source.context is first) == (False, False)
    second = source.context
    (tmp_path / "new").write_text("nonsense")
    os.replace(tmp_path / "new", key_store)
    source.reload()
    assert source.context is second
    assert not source.is_stale


@pytest.mark.parametrize(
    ("name", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    ],
)
def test_names_of_cipher_suites(name: str, openssl: str) -> None:
    assert openssl_name(name) == openssl
