"""ssl.principal.mapping.rules with the examples of Kafka's documentation, and distinguished names as in Java."""

import pytest

from sskafka.model.security.certificate_names import (
    MappingRuleError,
    distinguished_name,
    mapped_name,
    parse_mapping_rules,
)

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        (RULES, "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "serviceuser"),
        (RULES, "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        (RULES, "OU=JavaSoft,CN=Duke.Nukem,O=Sun", "duke.nukem"),
        (RULES, "OU=JavaSoft", "OU=JavaSoft"),
        ("DEFAULT", "CN=x", "CN=x"),
        ("", "CN=x", "CN=x"),
        ("RULE:^CN=(.*)$/$1/U", "CN=x", "X"),
        ("RULE:^CN=(.*)$/cost \\$1/", "CN=x", "cost $1"),
        ("RULE:^cn=(a\\/b)$/$1/", "cn=a/b", "a/b"),
        (" RULE:^CN=(.*)$/$1/L , DEFAULT ", "CN=X", "x"),
        ("RULE:^OU=(.*)$/$1/", "CN=x", None),
    ],
)
def test_the_first_rule_that_matches_names_the_principal(rules: str, name: str, mapped: str | None) -> None:
    assert mapped_name(parse_mapping_rules(rules), name) == mapped


@pytest.mark.parametrize(
    "rules", ["RULE:^CN=(.*)$", "RULE:(/x/", "RULE:a/$1/", "default", "RULE:a/b/X", "DEFAULT RULE:a/b/"]
)
def test_rules_that_cannot_be_parsed_are_refused(rules: str) -> None:
    with pytest.raises(MappingRuleError):
        parse_mapping_rules(rules)


def test_distinguished_names_begin_with_the_last_component() -> None:
    subject = (
        (("countryName", "DE"),),
        (("organizationName", 'Acme, "Inc"'),),
        (("commonName", "kafka 1 "), ("userId", "#7")),
        (("emailAddress", "a@b"),),
    )
    assert distinguished_name(subject) == (
        '1.2.840.113549.1.9.1=#1603614062,CN=kafka 1\\ +UID=\\#7,O=Acme\\, \\"Inc\\",C=DE'
    )
