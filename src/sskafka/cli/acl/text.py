"""ACLs as text: rows of a table, and JSON."""

from collections.abc import Mapping, Sequence

from sskafka.cli.output import print_json, print_table
from sskafka.metadata.acls.binding import AclBinding
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType


def acl_json(binding: AclBinding) -> dict[str, str]:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "permission": AclPermission(binding.permission).name,
        "operation": AclOperation(binding.operation).name,
        "resource_type": ResourceType(binding.resource_type).name,
        "resource_name": binding.resource_name,
        "pattern_type": PatternType(binding.pattern_type).name,
    }


def print_acls(bindings: Sequence[AclBinding], *, as_json: bool) -> None:
    _print([acl_json(binding) for binding in bindings], (), as_json=as_json)


def print_changes(changes: Mapping[AclBinding, str], *, as_json: bool) -> None:
    """Print each ACL with what was done with it."""
    rows = [{**acl_json(binding), "change": change} for binding, change in changes.items()]
    _print(rows, ("CHANGE",), as_json=as_json)


def _print(rows: list[dict[str, str]], more: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    headers = ("PRINCIPAL", "HOST", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN", *more)
    print_table(headers, [tuple(row.values()) for row in rows])
