"""Names of TLS clients: the distinguished name of a certificate, and `ssl.principal.mapping.rules`.

    RULE:pattern/replacement/[L|U]    where the pattern matches the whole name: the replacement, with $1 for groups;
                                      L turns it into lower case, U into upper case
    DEFAULT                           the name as it is

Rules are separated by commas; the first one that matches wins.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from sskafka.model.values import value

Rdn: TypeAlias = tuple[tuple[str, str], ...]
"""One or more attributes, as `SSLObject.getpeercert` has them: long name and value."""

_KEYWORDS = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_OIDS = {
    "emailAddress": "1.2.840.113549.1.9.1",
    "surname": "2.5.4.4",
    "serialNumber": "2.5.4.5",
    "businessCategory": "2.5.4.15",
    "postalCode": "2.5.4.17",
    "title": "2.5.4.12",
    "givenName": "2.5.4.42",
    "initials": "2.5.4.43",
    "generationQualifier": "2.5.4.44",
    "dnQualifier": "2.5.4.46",
    "pseudonym": "2.5.4.65",
}
_IA5_STRING, _PRINTABLE_STRING, _UTF8_STRING = 0x16, 0x13, 0x0C
_PRINTABLE = re.compile(r"[A-Za-z0-9 '()+,\-./:=?]*")
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:[,\n]|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d)")


class MappingRuleError(ValueError):
    """`ssl.principal.mapping.rules` cannot be parsed."""


@value
class MappingRule:
    pattern: re.Pattern[str] | None
    """None: DEFAULT."""
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Return the mapped name, or None if this rule does not match."""
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        mapped = _REFERENCE.sub(lambda ref: ref[1] or match[int(ref[2])] or "", self.replacement)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)


def parse_mapping_rules(text: str) -> tuple[MappingRule, ...]:
    rules: list[MappingRule] = []
    position, end = 0, len(text.strip())
    text = text.strip() or "DEFAULT"
    end = len(text)
    while position < end:
        match = _RULE.match(text, position)
        if match is None:
            raise MappingRuleError(f"expected DEFAULT or RULE:pattern/replacement/[LU] at {text[position:]!r}")
        rules.append(MappingRule(None) if match[1] else _rule(match[2], match[3], match[4]))
        position = match.end()
    return tuple(rules)


def _rule(pattern: str, replacement: str, case: str) -> MappingRule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise MappingRuleError(f"{pattern!r} is no regular expression: {error}") from None
    groups = [int(ref[2]) for ref in _REFERENCE.finditer(replacement) if ref[2]]
    if groups and max(groups) > compiled.groups:
        raise MappingRuleError(f"{replacement!r} refers to group {max(groups)}; the pattern has {compiled.groups}")
    return MappingRule(compiled, replacement, case)


def mapped_name(rules: Iterable[MappingRule], name: str) -> str | None:
    """Return the name that the first matching rule gives, or None if no rule matches."""
    return next((mapped for rule in rules if (mapped := rule.apply(name)) is not None), None)


def distinguished_name(subject: Sequence[Rdn]) -> str:
    """Return the name in the form of RFC 2253, the last component first, as Java's X500Principal shows it."""
    return ",".join("+".join(_attribute(*pair) for pair in rdn) for rdn in reversed(subject))


def _attribute(kind: str, text: str) -> str:
    if kind in _KEYWORDS:
        return f"{_KEYWORDS[kind]}={_escaped(text)}"
    return f"{_OIDS.get(kind, kind)}=#{_der_string(kind, text).hex()}"


def _der_string(kind: str, text: str) -> bytes:
    tag = _PRINTABLE_STRING if _PRINTABLE.fullmatch(text) else _UTF8_STRING
    data = text.encode()
    length = bytes([len(data)]) if len(data) < 128 else b"\x82" + len(data).to_bytes(2, "big")
    return bytes([_IA5_STRING if kind == "emailAddress" else tag]) + length + data


def _escaped(text: str) -> str:
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", text)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if len(text) > 1 and escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return escaped
