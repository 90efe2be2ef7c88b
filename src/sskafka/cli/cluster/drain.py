"""`sskafka cluster drain`: move all replicas of a broker to other brokers, before the broker is removed."""

from typing import Annotated

import typer

from sskafka.cli.cluster.partitions import tell_outcomes
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.options import DryRunOption
from sskafka.cli.output import talk
from sskafka.client.admin import Admin
from sskafka.client.cluster import Cluster
from sskafka.client.draining import NoBrokerLeftError, plan_drain
from sskafka.client.partition_moves import alter_reassignments
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition


def drain(
    broker_id: Annotated[int, typer.Argument(metavar="BROKER")],
    allow_fewer: Annotated[
        bool,
        typer.Option(
            "--allow-fewer-replicas", help="Drop the replica of a partition that every other broker has already."
        ),
    ] = False,
    dry_run: DryRunOption = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Move all replicas of a broker to other brokers, in other racks if possible."""

    async def work() -> dict[TopicPartition, KafkaError | None]:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            plan = await _plan(cluster, broker_id, allow_fewer)
            if dry_run:
                for (topic, partition), replicas in plan.items():
                    print(f"{topic}:{partition}={','.join(map(str, replicas))}")
                return {}
            return await alter_reassignments(cluster, plan) if plan else {}

    outcomes = run(work())
    if not outcomes and not dry_run:
        talk(f"broker {broker_id} has no replicas")
    tell_outcomes(outcomes, "is being moved; `sskafka cluster reassignments` shows the progress")


async def _plan(cluster: Cluster, broker_id: int, allow_fewer: bool) -> dict[TopicPartition, tuple[int, ...]]:
    described = await Admin(cluster).describe_cluster(include_fenced=True)
    if broker_id not in {broker.broker_id for broker in described.brokers}:
        raise CommandError(f"broker {broker_id} is not registered", "`sskafka cluster status` shows the brokers")
    racks = {
        broker.broker_id: broker.rack
        for broker in described.brokers
        if broker.broker_id != broker_id and not broker.is_fenced
    }
    view = await cluster.retrying(lambda: cluster.refresh(None))
    try:
        return plan_drain(view.topics.values(), broker_id, racks, allow_fewer=allow_fewer)
    except NoBrokerLeftError as error:
        raise CommandError(
            str(error), "start another broker, or drop such replicas with --allow-fewer-replicas"
        ) from error
