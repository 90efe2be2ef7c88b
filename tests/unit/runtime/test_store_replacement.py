"""Which key and trust stores may replace those in use, and what stays in use when one is refused."""

import os
import ssl
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.certificates import Certificates

from sskafka.runtime.tls.contexts import ReloadingContext, TlsOptions, server_context, with_contents
from sskafka.runtime.tls.replacement import ReplacementRules
from sskafka.runtime.tls.stores import TlsConfigError

BETWEEN_NODES, FOR_CLIENTS = ReplacementRules(is_between_nodes=True), ReplacementRules(is_between_nodes=False)
HOSTS = ("localhost", "127.0.0.1")


class Stores:
    """The stores of a node, and others that may replace them: files, as a broker has them."""

    def __init__(self, directory: Path) -> None:
        self.ours, self.strangers = Certificates(directory / "ours"), Certificates(directory / "strangers")
        both = directory / "both.pem"
        both.write_bytes(self.ours.ca.read_bytes() + self.strangers.ca.read_bytes())
        self.both = both

    def key(self, name: str, *hosts: str, user: str = "node", is_expired: bool = False, strange: bool = False) -> Path:
        authority = self.strangers if strange else self.ours
        wanted = hosts or HOSTS
        return authority.issue(f"{name}.pem", *wanted, common_name=user, unit="tests", is_expired=is_expired)

    def options(self, key: Path, trust: Path | None = None, client_auth: str = "required") -> TlsOptions:
        return TlsOptions(
            keystore_location=str(key), truststore_location=str(trust or self.ours.ca), client_auth=client_auth
        )


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path)


def check(rules: ReplacementRules, old: TlsOptions, new: TlsOptions) -> None:
    rules.check(with_contents(old), with_contents(new))


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_a_renewed_certificate_may_have_more_names(stores: Stores, client_auth: str) -> None:
    old = stores.options(stores.key("old"), client_auth=client_auth)
    check(BETWEEN_NODES, old, stores.options(stores.key("same"), client_auth=client_auth))
    check(BETWEEN_NODES, old, stores.options(stores.key("more", *HOSTS, "node.example"), client_auth=client_auth))


@pytest.mark.parametrize("rules", [BETWEEN_NODES, FOR_CLIENTS], ids=["between nodes", "for clients"])
def test_the_distinguished_name_stays(stores: Stores, rules: ReplacementRules) -> None:
    old, new = stores.options(stores.key("old")), stores.options(stores.key("new", user="another"))
    with pytest.raises(TlsConfigError, match=r"DistinguishedName does not match: existing=CN=node.*new=CN=another"):
        check(rules, old, new)
    check(ReplacementRules(rules.is_between_nodes, allows_dn_changes=True), old, new)


@pytest.mark.parametrize("rules", [BETWEEN_NODES, FOR_CLIENTS], ids=["between nodes", "for clients"])
def test_alternative_names_stay(stores: Stores, rules: ReplacementRules) -> None:
    old, new = stores.options(stores.key("old")), stores.options(stores.key("new", "localhost"))
    with pytest.raises(TlsConfigError, match=r"SubjectAltNames do not match: .* has no IP Address:127\.0\.0\.1"):
        check(rules, old, new)
    check(ReplacementRules(rules.is_between_nodes, allows_san_changes=True), old, new)


def test_nodes_must_trust_the_new_certificate(stores: Stores) -> None:
    old, new = stores.options(stores.key("old")), stores.options(stores.key("new", strange=True))
    with pytest.raises(TlsConfigError, match="nodes with the new stores do not trust each other"):
        check(BETWEEN_NODES, old, new)
    check(FOR_CLIENTS, old, new)  # its clients have trust stores of their own


def test_nodes_with_the_old_stores_must_trust_the_new_certificate(stores: Stores) -> None:
    old, new = stores.options(stores.key("old")), stores.options(stores.key("new", strange=True), stores.both)
    with pytest.raises(TlsConfigError, match="nodes with the old stores do not trust the new ones"):
        check(BETWEEN_NODES, old, new)


def test_a_new_trust_store_must_trust_nodes_with_the_old_certificate(stores: Stores) -> None:
    old = stores.options(stores.key("old"), stores.both, "none")
    new = stores.options(stores.key("new", strange=True), stores.strangers.ca, "none")
    with pytest.raises(TlsConfigError, match="does not trust those with the old ones"):
        check(BETWEEN_NODES, old, new)


def test_an_authority_is_replaced_in_three_steps(stores: Stores) -> None:
    key, new_key = stores.key("old"), stores.key("new", strange=True)
    steps = [(key, stores.ours.ca), (key, stores.both), (new_key, stores.both), (new_key, stores.strangers.ca)]
    states = [stores.options(*step) for step in steps]
    for old, new in pairwise(states):
        check(BETWEEN_NODES, old, new)


def test_an_expired_certificate_is_refused_but_can_be_replaced(stores: Stores) -> None:
    good, expired = stores.options(stores.key("good")), stores.options(stores.key("expired", is_expired=True))
    with pytest.raises(TlsConfigError, match="certificate has expired"):
        check(BETWEEN_NODES, good, expired)
    check(BETWEEN_NODES, expired, good)
    stranger = stores.options(stores.key("stranger", strange=True))
    with pytest.raises(TlsConfigError, match="do not trust each other"):
        check(BETWEEN_NODES, expired, stranger)


def test_stores_that_nodes_never_could_use_with_each_other_may_be_replaced(stores: Stores) -> None:
    """A single broker without a trust store."""
    old, new = (TlsOptions(keystore_location=str(stores.key(name))) for name in ("old", "new"))
    check(BETWEEN_NODES, old, new)


def test_a_file_that_may_not_replace_the_old_one_changes_nothing(stores: Stores) -> None:
    path = stores.key("node")
    source = ReloadingContext(stores.options(path), server_context, BETWEEN_NODES.check)
    in_use = source.context
    path.write_bytes(stores.key("another", user="another").read_bytes())
    os.utime(path, (1, 1))
    assert source.is_stale
    source.reload()
    assert source.context is in_use
    assert not source.is_stale, "it would be read again and again"
    path.write_bytes(stores.key("renewed").read_bytes())
    source.reload()
    assert source.context is not in_use


COMMENT = "# Wurzelzertifikat der Behörde\n"


@pytest.mark.parametrize("comment", [COMMENT.encode("utf-8"), COMMENT.encode("latin-1"), b"\xef\xbb\xbf"])
def test_a_trust_store_may_have_comments_that_are_not_ascii(stores: Stores, comment: bytes) -> None:
    trust = stores.both
    source = ReloadingContext(stores.options(stores.key("node"), trust), server_context, BETWEEN_NODES.check)
    in_use = source.context
    trust.write_bytes(comment + stores.ours.ca.read_bytes() + comment + stores.strangers.ca.read_bytes() + comment)
    source.reload()
    assert source.context is not in_use
    assert len(source.context.get_ca_certs()) == 2


@pytest.mark.parametrize("certificates", ["", "no certificates", "Behörde"])
def test_trusted_certificates_that_are_none_change_nothing(stores: Stores, certificates: str) -> None:
    options = stores.options(stores.key("node"))
    source = ReloadingContext(options, server_context, BETWEEN_NODES.check)
    wrong = {**options.to_json(), "truststore_location": None, "truststore_certificates": certificates}
    with pytest.raises(TlsConfigError, match="the trusted certificates cannot be used: "):
        source.change_to(TlsOptions.from_json(wrong))
    assert source.options == options


def test_options_that_may_not_replace_the_old_ones_change_nothing(stores: Stores) -> None:
    options = stores.options(stores.key("node"))
    source = ReloadingContext(options, server_context, BETWEEN_NODES.check)
    in_use = source.context
    with pytest.raises(TlsConfigError):
        source.change_to(stores.options(stores.key("another", user="another")))
    assert (source.context, source.options) == (in_use, options)


def test_tls_1_2_alone(stores: Stores) -> None:
    """There, a server refuses a client without a certificate before the handshake ends."""

    def only_1_2(key: Path) -> TlsOptions:
        return TlsOptions.from_json({**stores.options(key).to_json(), "enabled_protocols": ["TLSv1.2"]})

    check(BETWEEN_NODES, only_1_2(stores.key("old")), only_1_2(stores.key("new")))
    with pytest.raises(TlsConfigError, match=r"DistinguishedName"):
        check(BETWEEN_NODES, only_1_2(stores.key("old")), only_1_2(stores.key("other", user="other")))
    assert server_context(only_1_2(stores.key("old"))).maximum_version == ssl.TLSVersion.TLSv1_2
