"""`sskafka acl list | add | remove`: access control lists, with the options of kafka-acls."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import typer

from sskafka.cli.confirm import confirm
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
    run_on_cluster,
)
from sskafka.cli.failures import report_each
from sskafka.cli.options import DryRunOption, FormatOption, YesOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.cli.usage import UsageError
from sskafka.client.acl_rules import AclResources, AclRule, AclRuleError, acl_filters, exact_filter
from sskafka.client.acls import create_acls, delete_acls, describe_acls
from sskafka.client.cluster import Cluster
from sskafka.metadata.acls.binding import AclBinding
from sskafka.metadata.acls.filter import AclFilter
from sskafka.model.acl import AclOperation, AclPermission, PatternType, ResourceType
from sskafka.model.errors import KafkaError

Words = list[str] | None

TopicsOption = Annotated[Words, typer.Option("--topic", "-t", help="Topic; '*' for all. Repeatable.")]
GroupsOption = Annotated[Words, typer.Option("--group", "-g", help="Group; '*' for all. Repeatable.")]
TransactionalIdsOption = Annotated[
    Words, typer.Option("--transactional-id", help="Transactional id; '*' for all. Repeatable.")
]
DelegationTokensOption = Annotated[Words, typer.Option("--delegation-token", help="Delegation token. Repeatable.")]
UserPrincipalsOption = Annotated[
    Words, typer.Option("--user-principal", help="User whose delegation tokens are created or described. Repeatable.")
]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="The cluster as a whole.")]
PatternTypeOption = Annotated[
    str,
    typer.Option(
        "--resource-pattern-type",
        metavar="literal|prefixed",
        help="literal: whole names; prefixed: beginnings of names. `list` and `remove` also take any and match.",
    ),
]
OperationsOption = Annotated[
    Words, typer.Option("--operation", metavar="OPERATION", help="For example Read or DescribeConfigs. Repeatable.")
]
AllowPrincipalsOption = Annotated[
    Words,
    typer.Option(
        "--allow-principal", metavar="User:NAME", help="Principal that is allowed, such as User:alice. Repeatable."
    ),
]
DenyPrincipalsOption = Annotated[
    Words,
    typer.Option(
        "--deny-principal", metavar="User:NAME", help="Principal that is denied, such as User:alice. Repeatable."
    ),
]
AllowHostsOption = Annotated[
    Words,
    typer.Option(
        "--allow-host", metavar="ADDRESS", help="Host or network, such as 10.0.0.0/8, that is allowed. Repeatable."
    ),
]
DenyHostsOption = Annotated[
    Words,
    typer.Option(
        "--deny-host", metavar="ADDRESS", help="Host or network, such as 10.0.0.0/8, that is denied. Repeatable."
    ),
]
ProducerOption = Annotated[
    bool, typer.Option("--producer", help="The ACLs that a producer needs on its topics and transactional ids.")
]
ConsumerOption = Annotated[
    bool, typer.Option("--consumer", help="The ACLs that a consumer needs on its topics and groups.")
]
IdempotentOption = Annotated[
    bool, typer.Option("--idempotent", help="With --producer: IdempotentWrite, which brokers before Kafka 2.8 need.")
]


def named_resources(
    topics: Words,
    groups: Words,
    transactional_ids: Words,
    delegation_tokens: Words,
    user_principals: Words,
    cluster: bool,
    pattern_type: str,
) -> AclResources:
    return AclResources(
        tuple(topics or ()),
        tuple(groups or ()),
        tuple(transactional_ids or ()),
        tuple(delegation_tokens or ()),
        tuple(user_principals or ()),
        cluster,
        pattern_type,
    )


app = typer.Typer(help="List, add and remove ACLs.", no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command("list")
def list_command(
    principals: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="User:NAME", help="Only ACLs of this principal. Repeatable."),
    ] = None,
    topics: TopicsOption = None,
    groups: GroupsOption = None,
    transactional_ids: TransactionalIdsOption = None,
    delegation_tokens: DelegationTokensOption = None,
    user_principals: UserPrincipalsOption = None,
    whole_cluster: ClusterOption = False,
    pattern_type: PatternTypeOption = "literal",
    operations: OperationsOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List ACLs. With --resource-pattern-type match: those that apply to the resource, also by prefix or wildcard."""
    resources = named_resources(
        topics, groups, transactional_ids, delegation_tokens, user_principals, whole_cluster, pattern_type
    )
    filters = _filters(resources, principals, operations)

    async def work() -> list[AclBinding]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            return sorted({binding for wanted in filters for binding in await describe_acls(cluster, wanted)})

    _print_acls(run(work()), output=output)


@app.command()
def add(
    allow_principals: AllowPrincipalsOption = None,
    deny_principals: DenyPrincipalsOption = None,
    allow_hosts: AllowHostsOption = None,
    deny_hosts: DenyHostsOption = None,
    operations: OperationsOption = None,
    producer: ProducerOption = False,
    consumer: ConsumerOption = False,
    idempotent: IdempotentOption = False,
    topics: TopicsOption = None,
    groups: GroupsOption = None,
    transactional_ids: TransactionalIdsOption = None,
    delegation_tokens: DelegationTokensOption = None,
    user_principals: UserPrincipalsOption = None,
    whole_cluster: ClusterOption = False,
    pattern_type: PatternTypeOption = "literal",
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Add an ACL for each combination of principal, host, operation and resource. Default: all operations."""
    resources = named_resources(
        topics, groups, transactional_ids, delegation_tokens, user_principals, whole_cluster, pattern_type
    )
    rule = AclRule(
        resources,
        tuple(allow_principals or ()),
        tuple(deny_principals or ()),
        tuple(allow_hosts or ()),
        tuple(deny_hosts or ()),
        tuple(operations or ()),
        producer,
        consumer,
        idempotent,
    )
    bindings = _bindings(rule)

    added = run_on_cluster(bootstrap, properties, lambda cluster: _add(cluster, bindings, dry_run=dry_run))
    _print_changes(added.changes, output=output)
    report_each({" ".join(_acl_json(binding).values()): error for binding, error in added.failed.items()})
    if added.failed:
        raise typer.Exit(1)


class AddedAcls(NamedTuple):
    changes: dict[AclBinding, str]
    failed: dict[AclBinding, KafkaError]


async def _add(cluster: Cluster, bindings: list[AclBinding], *, dry_run: bool) -> AddedAcls:
    existing = set(await describe_acls(cluster)).intersection(bindings)
    missing = [binding for binding in bindings if binding not in existing]
    outcomes = {} if dry_run or not missing else await create_acls(cluster, missing)
    failed = {binding: error for binding, error in outcomes.items() if error is not None}
    done = "would be added" if dry_run else "added"
    changes = {binding: "exists" if binding in existing else done for binding in bindings if binding not in failed}
    return AddedAcls(changes, failed)


@app.command()
def remove(
    principals: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="User:NAME", help="ACLs that allow or deny this operation. Repeatable."),
    ] = None,
    allow_principals: AllowPrincipalsOption = None,
    deny_principals: DenyPrincipalsOption = None,
    operations: OperationsOption = None,
    producer: ProducerOption = False,
    consumer: ConsumerOption = False,
    idempotent: IdempotentOption = False,
    topics: TopicsOption = None,
    groups: GroupsOption = None,
    transactional_ids: TransactionalIdsOption = None,
    delegation_tokens: DelegationTokensOption = None,
    user_principals: UserPrincipalsOption = None,
    whole_cluster: ClusterOption = False,
    pattern_type: PatternTypeOption = "literal",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    force: Annotated[bool, typer.Option("--force", hidden=True)] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Remove the ACLs that match all given options. Options that are not given match all; --dry-run shows the ACLs."""
    resources = named_resources(
        topics, groups, transactional_ids, delegation_tokens, user_principals, whole_cluster, pattern_type
    )
    if producer or consumer:
        allowed = (*(allow_principals or ()), *(principals or ()))
        rule = AclRule(
            resources,
            allowed,
            tuple(deny_principals or ()),
            operations=tuple(operations or ()),
            producer=producer,
            consumer=consumer,
            idempotent=idempotent,
        )
        filters = [exact_filter(binding) for binding in _bindings(rule)]
    else:
        filters = _filters_to_remove(resources, principals, allow_principals, deny_principals, operations)

    async def work() -> list[AclBinding]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            found = sorted({binding for wanted in filters for binding in await describe_acls(cluster, wanted)})
            if dry_run or not found:
                return found
            confirm(f"removes {len(found)} ACLs; --dry-run shows them", yes=yes or force)
            return await delete_acls(cluster, filters)

    removed = run(work())
    done = "would be removed" if dry_run else "removed"
    _print_changes(dict.fromkeys(removed, done), output=output)
    if not removed:
        talk("no ACL matches; `sskafka acl list` shows them")


def _filters_to_remove(
    resources: AclResources,
    principals: Sequence[str] | None,
    allowed: Sequence[str] | None,
    denied: Sequence[str] | None,
    operations: Sequence[str] | None,
) -> list[AclFilter]:
    if not (principals or allowed or denied):
        filters = _filters(resources, None, operations)
        if filters[0].resource_type == ResourceType.ANY:
            raise UsageError("name a principal or a resource: the ACLs of all principals and resources would match")
        return filters
    filters = []
    for names, permission in (
        (principals, AclPermission.ANY),
        (allowed, AclPermission.ALLOW),
        (denied, AclPermission.DENY),
    ):
        if names:
            filters += _filters(resources, names, operations, permission)
    return filters


def _filters(
    resources: AclResources,
    principals: Sequence[str] | None,
    operations: Sequence[str] | None,
    permission: AclPermission = AclPermission.ANY,
) -> list[AclFilter]:
    try:
        return acl_filters(resources, principals or (), operations or (), permission)
    except AclRuleError as error:
        raise UsageError(str(error)) from error


def _bindings(rule: AclRule) -> list[AclBinding]:
    try:
        return rule.bindings()
    except AclRuleError as error:
        raise UsageError(str(error)) from error


def _acl_json(binding: AclBinding) -> dict[str, str]:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "permission": AclPermission(binding.permission).name,
        "operation": AclOperation(binding.operation).name,
        "resource_type": ResourceType(binding.resource_type).name,
        "resource_name": binding.resource_name,
        "pattern_type": PatternType(binding.pattern_type).name,
    }


def _print_acls(bindings: Sequence[AclBinding], *, output: Format) -> None:
    _print([_acl_json(binding) for binding in bindings], (), output=output)


def _print_changes(changes: Mapping[AclBinding, str], *, output: Format) -> None:
    """Print each ACL with what was done with it."""
    rows = [{**_acl_json(binding), "change": change} for binding, change in changes.items()]
    _print(rows, ("CHANGE",), output=output)


def _print(rows: list[dict[str, str]], more: tuple[str, ...], *, output: Format) -> None:
    if output.is_data:
        print_data(output, rows)
        return
    headers = ("PRINCIPAL", "HOST", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN", *more)
    print_table(headers, [tuple(row.values()) for row in rows], if_empty="there are no such ACLs")
