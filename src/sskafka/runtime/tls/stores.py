"""Read keys and certificates in the formats of `ssl.keystore.type` and `ssl.truststore.type`: PEM and PKCS#12.

The contents of a file decide about its format, as they do in Java, where `JKS` also reads PKCS#12. Files in Java's own
format are refused with the command that converts them. PKCS#12 needs the package `cryptography` (extra `tls`).
"""

from pathlib import Path
from typing import Any

from sskafka.model.extras import install_extra
from sskafka.model.values import value

_PEM_BEGIN = b"-----BEGIN"
_JAVA_MAGIC = {bytes.fromhex("feedfeed"): "JKS", bytes.fromhex("cececece"): "JCEKS"}


class TlsConfigError(ValueError):
    """Keys or certificates cannot be used. The text names the file or setting, never a secret."""


@value
class KeyStore:
    """A private key with its certificate chain, in PEM."""

    pem: bytes
    password: str | None
    """Password of the private key, if it is encrypted."""

    def __repr__(self) -> str:
        return "KeyStore(...)"


def read_key_store(path: str, store_password: str | None, key_password: str | None) -> KeyStore:
    data = _read(path)
    if _PEM_BEGIN in data:
        return KeyStore(data, key_password or store_password)
    _refuse_java_format(path, data)
    return KeyStore(_pkcs12_key(path, data, store_password), None)


def read_trusted_certificates(path: str, store_password: str | None) -> str:
    """Return the certificates of a trust store in PEM. Comments between them may have any encoding."""
    data = _read(path)
    if _PEM_BEGIN in data:
        return data.decode("ascii", "ignore")
    _refuse_java_format(path, data)
    return _pkcs12_certificates(path, data, store_password)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise TlsConfigError(f"{path} cannot be read: {error.strerror}") from None


def _refuse_java_format(path: str, data: bytes) -> None:
    kind = _JAVA_MAGIC.get(data[:4])
    if kind is not None:
        converted = str(Path(path).with_suffix(".p12"))
        raise TlsConfigError(
            f"{path} is in Java's format {kind}, which is not supported; convert it: keytool -importkeystore "
            f"-srckeystore {path} -destkeystore {converted} -deststoretype PKCS12"
        )


def _pkcs12_key(path: str, data: bytes, password: str | None) -> bytes:
    stored = _load_pkcs12(path, data, password)
    if stored.key is None or stored.cert is None:
        raise TlsConfigError(f"{path} has no private key with a certificate")
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415  loaded by now

    pem: bytes = stored.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return pem + _certificates_in_pem(stored)


def _pkcs12_certificates(path: str, data: bytes, password: str | None) -> str:
    pem = _certificates_in_pem(_load_pkcs12(path, data, password))
    if not pem:
        raise TlsConfigError(f"{path} has no certificates")
    return pem.decode()


def _certificates_in_pem(stored: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415  loaded by now

    found = [item for item in (stored.cert, *stored.additional_certs) if item is not None]
    return b"".join(item.certificate.public_bytes(Encoding.PEM) for item in found)


def _load_pkcs12(path: str, data: bytes, password: str | None) -> Any:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  optional
    except ImportError:
        text = f"PKCS#12 needs the package cryptography ({install_extra('tls')}), or convert the file to PEM: "
        command = f"openssl pkcs12 -in {path} -out {Path(path).with_suffix('.pem')} -nodes"
        raise TlsConfigError(f"{path}: {text}{command}") from None
    try:
        return pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError:
        text = "is neither PEM nor PKCS#12, or its password is wrong"
        raise TlsConfigError(f"{path} {text}") from None
