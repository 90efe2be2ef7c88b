"""`sskafka transaction`: list, describe and abort transactions.

Aborting by transactional id fences its producer. A hanging transaction, which no coordinator knows, is aborted by its
partition and start offset.
"""

import time
from typing import Annotated, Any, NamedTuple

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
    run_on_cluster,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_table, talk
from sskafka.client import transactions
from sskafka.client.partition_producers import abort_hanging
from sskafka.model.ids import TopicPartition
from sskafka.transactions.metadata import STATE_BY_LABEL
from sskafka.wire.messages.describe_transactions import TransactionState

NOT_STARTED = -1

app = typer.Typer(
    help="List, describe and abort transactions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command("list")
def list_(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only in this state, for example Ongoing. Repeatable."),
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List transactional ids with their producer, state and coordinator."""
    for unknown in [label for label in state or () if label not in STATE_BY_LABEL]:
        raise typer.BadParameter(f"{unknown!r} is not one of {', '.join(STATE_BY_LABEL)}", param_hint="--state")

    states = state or ()
    found = sorted(
        run_on_cluster(bootstrap, properties, lambda cluster: transactions.list_transactions(cluster, states))
    )
    if output.is_data:
        print_data(output, [item._asdict() for item in found])
    else:
        columns = ("TRANSACTIONAL-ID", "PRODUCER-ID", "STATE", "COORDINATOR")
        print_table(columns, found, if_empty="there are no such transactional ids")


@app.command()
def describe(
    transactional_id: Annotated[str, typer.Argument(metavar="ID")],
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show the state of a transactional id, and the partitions of its open transaction."""

    found = run_on_cluster(bootstrap, properties, lambda cluster: transactions.describe(cluster, transactional_id))
    shown = _shown(found, time.time_ns() // 1_000_000)
    if output.is_data:
        print_data(output, shown)
        return
    for label, value in shown.items():
        text = " ".join(value) or None if isinstance(value, list) else value
        print(f"{label.replace('_', '-').upper():<18}{'-' if text is None else text}")


def _shown(state: TransactionState, now_ms: int) -> dict[str, Any]:
    is_open = state.transaction_start_time_ms != NOT_STARTED and state.transaction_state == "Ongoing"
    return {
        "transactional_id": state.transactional_id,
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "state": state.transaction_state,
        "timeout_ms": state.transaction_timeout_ms,
        "open_for_ms": now_ms - state.transaction_start_time_ms if is_open else None,
        "partitions": [f"{topic.topic}-{index}" for topic in state.topics for index in topic.partitions],
    }


class Hanging(NamedTuple):
    partition: TopicPartition
    start_offset: int


@app.command()
def abort(
    transactional_id: Annotated[str | None, typer.Argument(metavar="ID")] = None,
    topic: Annotated[str | None, typer.Option(help="Topic of the hanging transaction.")] = None,
    partition: Annotated[int, typer.Option(help="Partition of the hanging transaction.")] = 0,
    start_offset: Annotated[int | None, typer.Option(help="First offset of the hanging transaction.")] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Abort the open transaction of an id and fence its producer, or abort a hanging transaction in a partition."""
    hanging = None
    if topic is not None and start_offset is not None:
        hanging = Hanging(TopicPartition(topic, partition), start_offset)
    if (transactional_id is None) == (hanging is None):
        raise typer.BadParameter("give a transactional id, or --topic, --partition and --start-offset")

    async def work() -> str:
        async with connected(bootstrap, client_properties(properties)) as cluster:
            if hanging is not None:
                producer = await abort_hanging(cluster, *hanging)
                return f"aborted the transaction of producer {producer.producer_id} in {hanging.partition}"
            assert transactional_id is not None
            taken = await transactions.abort_open(cluster, transactional_id)
            return (
                f"{transactional_id!r} has no open transaction; producers below epoch {taken.producer_epoch} are fenced"
            )

    talk(run(work()))
