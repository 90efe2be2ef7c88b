"""Options of the `sskafka acl` commands, under the names that kafka-acls has."""

from typing import Annotated

import typer

from sskafka.client.acl_rules import AclResources

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
    Words, typer.Option("--allow-principal", metavar="User:NAME", help="Who is allowed. Repeatable.")
]
DenyPrincipalsOption = Annotated[
    Words, typer.Option("--deny-principal", metavar="User:NAME", help="Who is denied. Repeatable.")
]
AllowHostsOption = Annotated[
    Words, typer.Option("--allow-host", metavar="ADDRESS", help="From where; a network as 10.0.0.0/8. Repeatable.")
]
DenyHostsOption = Annotated[
    Words, typer.Option("--deny-host", metavar="ADDRESS", help="From where; a network as 10.0.0.0/8. Repeatable.")
]
ProducerOption = Annotated[
    bool, typer.Option("--producer", help="What a producer needs on its topics and transactional ids.")
]
ConsumerOption = Annotated[bool, typer.Option("--consumer", help="What a consumer needs on its topics and groups.")]
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
