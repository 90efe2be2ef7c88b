"""Warnings about certificates that have expired, or expire soon."""

import time
from pathlib import Path

import pytest
from tests.support.certificates import Certificates

from sskafka.runtime.tls.contexts import ReloadingContext, TlsOptions, server_context
from sskafka.runtime.tls.expiry import DAY_S, ExpiryWarnings
from sskafka.runtime.tls.replacement import ReplacementRules

RULES = ReplacementRules(is_between_nodes=False)


def source_of(path: Path) -> ReloadingContext:
    return ReloadingContext(TlsOptions(keystore_location=str(path)), server_context, RULES.check)


def test_an_expired_certificate_is_reported_once_a_day(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = source_of(Certificates(tmp_path).issue("node.pem", "localhost", is_expired=True))
    warnings, now_s = ExpiryWarnings(), time.time()
    for later_s in (0, 10, DAY_S - 1):
        warnings.maybe_warn("CLIENTS", source, now_s + later_s)
    assert [record.message[:50] for record in caplog.records] == ["the certificate of listener CLIENTS has expired on"]
    warnings.maybe_warn("CLIENTS", source, now_s + DAY_S)
    assert len(caplog.records) == 2


def test_a_certificate_is_reported_before_it_expires(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certificates = Certificates(tmp_path)
    path = certificates.issue("node.pem", "localhost", unit="u", is_expired=True)
    source = source_of(path)
    expired_s = time.time() - DAY_S
    warnings = ExpiryWarnings()
    warnings.maybe_warn("CLIENTS", source, expired_s - 40 * DAY_S)
    assert not caplog.records
    warnings.maybe_warn("CLIENTS", source, expired_s - 20 * DAY_S)
    (record,) = caplog.records
    assert (record.levelname, "expires on" in record.message) == ("WARNING", True)
    certificates.issue("node.pem", "localhost", unit="u")
    source.reload()
    warnings.maybe_warn("CLIENTS", source, expired_s - 20 * DAY_S + 1)  # the new one is examined at once
    assert len(caplog.records) == 1
