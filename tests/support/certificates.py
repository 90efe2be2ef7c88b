"""Certificates of a certificate authority that exists for one test run."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


class Certificates:
    """A CA whose certificate is in `ca`; `issue` writes a key with its certificate chain into one PEM file."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = trustme.CA()
        self._directory = directory
        self.ca = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.ca))

    def issue(
        self,
        file_name: str,
        *names: str,
        common_name: str | None = None,
        unit: str | None = None,
        is_expired: bool = False,
    ) -> Path:
        """`unit`: a part of the subject, which differs from certificate to certificate unless it is given."""
        past = datetime.now(UTC) - timedelta(days=1)
        leaf = self._authority.issue_cert(
            *names,
            common_name=common_name,
            organization_unit_name=unit,
            not_after=past if is_expired else None,
        )
        path = self._directory / file_name
        path.unlink(missing_ok=True)
        leaf.private_key_and_cert_chain_pem.write_to_path(str(path))
        return path

    def server_settings(self, key_store: Path) -> dict[str, object]:
        return {
            "ssl.keystore.location": key_store,
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": self.ca,
            "ssl.truststore.type": "PEM",
        }
