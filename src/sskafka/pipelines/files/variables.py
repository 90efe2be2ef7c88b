"""Variables, profiles and secrets of a pipeline file, which are replaced before its fields are validated.

    ${lake}            a variable: from `--var`, the selected profile, or `variables:` of the file, in this order
    ${env:REGION}      an environment variable
    ${secret:jdbc}     a secret: the file `jdbc` in the directory SSKAFKA_SECRETS_DIR (default /run/secrets), else the
                       environment variable `jdbc`; its value is masked in errors, events and output
    ${lake:-out}       any of them with a default
    $${lake}           the text ${lake}

A profile overrides the file: its mappings are merged into those of the file, and its other values replace those of the
file. Nodes keep their positions, so that a mistake is reported where its text is.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import yaml

SECRETS_DIRECTORY = "SSKAFKA_SECRETS_DIR"
DEFAULT_SECRETS_DIRECTORY = "/run/secrets"
MASK = "********"

_REFERENCE = re.compile(r"\$(?P<escape>\$\{)|\$\{(?P<name>[^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*")

Report = Callable[[yaml.Node, str, str], None]
"""Reports a problem; takes the node, the path of the field, and the text."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options for reading a pipeline file: a profile, values of variables, and the environment."""

    profile: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def secret(self, name: str) -> str | None:
        """Return the value of a secret, without the line break at the end of its file."""
        directory = Path(self.environment.get(SECRETS_DIRECTORY, DEFAULT_SECRETS_DIRECTORY))
        if re.fullmatch(r"[\w.-]+", name) and (directory / name).is_file():
            return (directory / name).read_text(encoding="utf-8").rstrip("\n")
        return self.environment.get(name)


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret replaced; longer secrets first, because one may contain another."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def resolve(root: yaml.MappingNode, options: FileOptions, report: Report) -> tuple[yaml.MappingNode, set[str]]:
    """Return the file with its profile applied and all references replaced, and the secrets that it now contains."""
    with_profile = _with_profile(root, options.profile, report)
    resolver = _Resolver(options, report)
    resolver.define(with_profile)
    rest = _without(with_profile, ("variables", "profiles"))
    resolver.replace_in(rest)
    return rest, resolver.secrets


# Profiles


def _with_profile(root: yaml.MappingNode, name: str, report: Report) -> yaml.MappingNode:
    profiles = _profiles(_entry(root, "profiles"), report)
    if name in profiles:
        return _merged(root, profiles[name])
    if name:
        near = get_close_matches(name, profiles, n=1)
        known = f"it has {', '.join(profiles)}" if profiles else "it has none: add them under `profiles:`"
        hint = f"did you mean {near[0]}?" if near else known
        report(root, "profiles", f"the file has no profile {name!r}; {hint}")
    return root


def _profiles(node: yaml.Node | None, report: Report) -> dict[str, yaml.MappingNode]:
    if node is not None and not isinstance(node, yaml.MappingNode):
        report(node, "profiles", "must be a mapping of names to fields")
    entries = node.value if isinstance(node, yaml.MappingNode) else ()
    for key, value in entries:
        if not isinstance(value, yaml.MappingNode):
            report(value, f"profiles.{key.value}", "must be a mapping, with its fields indented below it")
    return {str(key.value): value for key, value in entries if isinstance(value, yaml.MappingNode)}


def _merged(below: yaml.MappingNode, above: yaml.MappingNode) -> yaml.MappingNode:
    replacing = {str(key.value): (key, value) for key, value in above.value}
    pairs: list[tuple[yaml.Node, yaml.Node]] = []
    for key, value in below.value:
        new_key, new_value = replacing.pop(str(key.value), (key, value))
        if isinstance(value, yaml.MappingNode) and isinstance(new_value, yaml.MappingNode) and value is not new_value:
            pairs.append((key, _merged(value, new_value)))
        else:
            pairs.append((new_key, new_value))
    return _like(below, [*pairs, *replacing.values()])


def _without(node: yaml.MappingNode, names: tuple[str, ...]) -> yaml.MappingNode:
    return _like(node, [(key, value) for key, value in node.value if str(key.value) not in names])


def _like(node: yaml.MappingNode, pairs: list[tuple[yaml.Node, yaml.Node]]) -> yaml.MappingNode:
    return yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark, node.flow_style)


def _entry(node: yaml.MappingNode, name: str) -> yaml.Node | None:
    return next((value for key, value in node.value if str(key.value) == name), None)


# References


class _Resolver:
    """Replaces references; a problem that concerns several nodes is reported at each of them."""

    def __init__(self, options: FileOptions, report: Report) -> None:
        self._options = options
        self._report = report
        self._variables: dict[str, str] = {}
        self._replaced: set[int] = set()
        self.secrets: set[str] = set()

    def define(self, root: yaml.MappingNode) -> None:
        """Define the variables of the file; each may refer to those above it."""
        node = _entry(root, "variables")
        if node is not None and not isinstance(node, yaml.MappingNode):
            self._report(node, "variables", "must be a mapping of names to values")
            node = None
        for key, value in [] if node is None else node.value:
            self._define(str(key.value), key, value)
        for name, text in self._options.variables.items():
            if name not in self._variables:
                known = ", ".join(self._variables) or "none: add them under `variables:`"
                self._report(node or root, "variables", f"the file has no variable {name!r}; it has {known}")
            self._variables[name] = text

    def _define(self, name: str, key: yaml.Node, value: yaml.Node) -> None:
        if not _VARIABLE.fullmatch(name):
            self._report(key, f"variables.{name}", "must begin with a letter and have letters, digits, _, - and . only")
        elif not isinstance(value, yaml.ScalarNode):
            self._report(value, f"variables.{name}", "must be text or a number")
        elif name in self._options.variables:
            self._variables[name] = self._options.variables[name]
        else:
            self._variables[name] = self._text(value)

    def replace_in(self, node: yaml.Node) -> None:
        """Replace the references in all values of this node; a node that has aliases is handled once."""
        if id(node) in self._replaced:
            return
        self._replaced.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            node.value = self._text(node)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self.replace_in(item)
        elif isinstance(node, yaml.MappingNode):
            for _, value in node.value:
                self.replace_in(value)

    def _text(self, node: yaml.ScalarNode) -> str:
        def value_of(found: re.Match[str]) -> str:
            return "${" if found["escape"] else self._value(node, found["name"])

        return _REFERENCE.sub(value_of, str(node.value))

    def _value(self, node: yaml.ScalarNode, reference: str) -> str:
        name, has_default, default = reference.partition(":-")
        value, advice = self._looked_up(name)
        if value is not None:
            return value
        if not has_default:
            self._report(node, f"${{{name}}}", advice)
        return default

    def _looked_up(self, name: str) -> tuple[str | None, str]:
        """Return the value, or None and what to do about it."""
        kind, colon, rest = name.partition(":")
        if not colon:
            near = get_close_matches(name, self._variables, n=1)
            hint = (
                f"did you mean ${{{near[0]}}}?" if near else f"define it under `variables:`, or give --var {name}=..."
            )
            return self._variables.get(name), f"there is no such variable; {hint}"
        if kind == "env":
            return self._options.environment.get(rest), f"the environment variable {rest} is not set"
        if kind == "secret":
            secret = self._options.secret(rest)
            self.secrets.update(() if secret is None else (secret,))
            directory = self._options.environment.get(SECRETS_DIRECTORY, DEFAULT_SECRETS_DIRECTORY)
            return secret, f"there is neither a file {directory}/{rest} nor an environment variable {rest}"
        return None, "is neither a variable nor ${env:NAME} nor ${secret:NAME}"
