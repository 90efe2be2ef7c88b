"""A private certificate authority: issues the certificates of nodes and users, as PEM files.

    DIR/ca.pem        certificate of the authority: what clients and nodes trust
    DIR/ca-key.pem    its private key, needed only to issue certificates
    DIR/NAME.pem      private key, certificate, and the authority's certificate, of a node or user

A file with a private key can be read by its owner only. Needs the package `cryptography` (extra `tls`).
"""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, Self

CA_CERTIFICATE, CA_KEY = "ca.pem", "ca-key.pem"
CA_DAYS = 3650
LEAF_DAYS = 397
"""Some TLS libraries refuse certificates of servers that are valid for longer."""
CLOCK_SKEW = timedelta(minutes=5)
_PRIVATE, _PUBLIC = 0o600, 0o644


class CertificateSummary(NamedTuple):
    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    is_ca: bool
    has_key: bool
    """Whether the file has a private key, too."""


class CertificateAuthority:
    def __init__(self, key: Any, certificate: Any) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def create(cls, name: str, now: datetime, days: int = CA_DAYS) -> Self:
        from cryptography import x509  # noqa: PLC0415  an extra

        key = _new_key()
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key(), now, days)
        usage = _key_usage(signs_certificates=True)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        return cls(key, _signed(builder, key))

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the authority of a directory. Raise OSError if it is not there."""
        from cryptography import x509  # noqa: PLC0415  an extra
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        certificate = x509.load_pem_x509_certificate((directory / CA_CERTIFICATE).read_bytes())
        return cls(load_pem_private_key((directory / CA_KEY).read_bytes(), None), certificate)

    def save(self, directory: Path) -> None:
        make_private_directory(directory)
        write_file(directory / CA_KEY, _key_pem(self._key), _PRIVATE)
        write_file(directory / CA_CERTIFICATE, self.certificate_pem, _PUBLIC)

    @property
    def certificate_pem(self) -> bytes:
        return _certificate_pem(self._certificate)

    def issue_node(self, name: str, hosts: Sequence[str], now: datetime, days: int = LEAF_DAYS) -> bytes:
        """Return key and certificates of a node, which is a server to clients and a client of other nodes."""
        return self._issue(name, hosts, now, days, is_server=True)

    def issue_user(self, name: str, now: datetime, days: int = LEAF_DAYS) -> bytes:
        """Return key and certificates of a user, whose principal is `User:CN=name`."""
        return self._issue(name, (), now, days, is_server=False)

    def _issue(self, name: str, hosts: Sequence[str], now: datetime, days: int, *, is_server: bool) -> bytes:
        from cryptography import x509  # noqa: PLC0415  an extra
        from cryptography.x509.oid import ExtendedKeyUsageOID as Usage  # noqa: PLC0415

        key = _new_key()
        builder = _builder(_name(name), self._certificate.subject, key.public_key(), now, days)
        usages = [Usage.SERVER_AUTH, Usage.CLIENT_AUTH] if is_server else [Usage.CLIENT_AUTH]
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = builder.add_extension(authority, critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(_general_names(hosts)), critical=False)
        return _key_pem(key) + _certificate_pem(_signed(builder, self._key)) + self.certificate_pem


def read_certificates(path: Path) -> list[CertificateSummary]:
    """Return the certificates of a PEM file in their order. Raise ValueError if there is none."""
    from cryptography import x509  # noqa: PLC0415  an extra

    data = path.read_bytes()
    try:
        certificates = x509.load_pem_x509_certificates(data)
    except ValueError:
        raise ValueError(f"{path} has no certificates in PEM") from None
    has_key = b"PRIVATE KEY-----" in data
    return [_summary(certificate, has_key=has_key and not index) for index, certificate in enumerate(certificates)]


def _summary(certificate: Any, *, has_key: bool) -> CertificateSummary:
    from cryptography import x509  # noqa: PLC0415  an extra

    def extension(kind: Any) -> Any:
        try:
            return certificate.extensions.get_extension_for_class(kind).value
        except x509.ExtensionNotFound:
            return None

    constraints = extension(x509.BasicConstraints)
    return CertificateSummary(
        certificate.subject.rfc4514_string(),
        certificate.issuer.rfc4514_string(),
        tuple(str(name.value) for name in extension(x509.SubjectAlternativeName) or ()),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        constraints is not None and constraints.ca,
        has_key,
    )


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, even if it replaces a file with other permissions."""
    write_file(path, data, _PRIVATE)


def write_file(path: Path, data: bytes, mode: int) -> None:
    """Replace the file atomically, so that no reader sees a part of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def make_private_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415  an extra

    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str) -> Any:
    from cryptography import x509  # noqa: PLC0415  an extra

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


def _builder(subject: Any, issuer: Any, public_key: Any, now: datetime, days: int) -> Any:
    from cryptography import x509  # noqa: PLC0415  an extra

    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=public_key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)


def _key_usage(*, signs_certificates: bool) -> Any:
    from cryptography import x509  # noqa: PLC0415  an extra

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_names(hosts: Iterable[str]) -> list[Any]:
    from cryptography import x509  # noqa: PLC0415  an extra

    names: list[Any] = []
    for host in dict.fromkeys(hosts):
        try:
            names.append(x509.IPAddress(ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _signed(builder: Any, key: Any) -> Any:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415  an extra

    return builder.sign(key, SHA256())


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  an extra

    pem: bytes = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return pem


def _certificate_pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  an extra

    pem: bytes = certificate.public_bytes(Encoding.PEM)
    return pem
