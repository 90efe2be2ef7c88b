"""`sskafka broker list | describe`: where brokers are, what they hold, and in which state they are."""

from collections import Counter
from typing import Any

from sskafka.cli.cluster.status import BROKER_COLUMNS, broker_json, broker_row
from sskafka.cli.completion import BrokerArgument
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    run_on_cluster,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, print_heading, print_table
from sskafka.cli.sizes import size_text
from sskafka.cli.watching import WatchOption, watch_cluster
from sskafka.client.balance.layout import Layout
from sskafka.client.balance.reading import read_layout
from sskafka.client.cluster import Cluster
from sskafka.client.cluster_status import BrokerStatus, ClusterStatus, cluster_status


def list_(
    watch: WatchOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """List brokers: address, rack, state, leaders, replicas, disk."""

    def show(found: ClusterStatus) -> None:
        if output.is_data:
            print_data(output, [broker_json(broker) for broker in found.brokers])
        else:
            print_table(BROKER_COLUMNS, [broker_row(broker) for broker in found.brokers])

    watch_cluster(bootstrap, properties, watch, cluster_status, show)


def describe(
    broker_id: BrokerArgument,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Describe a broker: state, log directories, and what it holds of each topic."""

    async def ask(cluster: Cluster) -> tuple[ClusterStatus, Layout]:
        return await cluster_status(cluster), await read_layout(cluster)

    found, layout = run_on_cluster(bootstrap, properties, ask)
    broker = next((one for one in found.brokers if one.node_id == broker_id), None)
    if broker is None:
        raise no_such_broker(broker_id, [one.node_id for one in found.brokers])
    topics = _topics_of(broker_id, layout)
    voters = [voter.node_id for voter in found.quorum.voters]
    if output.is_data:
        print_data(output, {**broker_json(broker), "is_voter": broker_id in voters, "topics": topics})
        return
    _print(broker, topics, is_voter=broker_id in voters)


def no_such_broker(broker_id: int, known: list[int]) -> CommandError:
    return CommandError(
        f"there is no broker {broker_id}",
        f"the brokers are {', '.join(map(str, sorted(known)))}; `sskafka broker list`",
    )


def _topics_of(broker_id: int, layout: Layout) -> list[dict[str, Any]]:
    leaders: Counter[str] = Counter()
    replicas: Counter[str] = Counter()
    in_sync: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for one in layout.partitions:
        topic = one.partition.topic
        if broker_id in one.replicas:
            replicas[topic] += 1
            leaders[topic] += one.leader == broker_id
            in_sync[topic] += broker_id in one.isr
            sizes[topic] += one.size_bytes
    return [
        {
            "topic": topic,
            "leaders": leaders[topic],
            "replicas": replicas[topic],
            "in_sync": in_sync[topic],
            "bytes": sizes[topic],
        }
        for topic in sorted(replicas)
    ]


def _print(broker: BrokerStatus, topics: list[dict[str, Any]], *, is_voter: bool) -> None:
    for label, value in (
        ("BROKER", broker.node_id),
        ("ADDRESS", broker.address),
        ("RACK", broker.rack or "-"),
        ("STATE", broker.state),
        ("QUORUM", "voter" if is_voter else "observer"),
        ("LEADERS", broker.leaders),
        ("REPLICAS", broker.replicas),
    ):
        print(f"{label:<10}{value}")
    print()
    print_heading("LOG DIRECTORIES")
    print_table(
        ("PATH", "LOGS", "DISK FREE", "STATE"),
        [
            (
                usage.path,
                size_text(usage.log_bytes),
                None if usage.usable_bytes is None else size_text(usage.usable_bytes),
                "failed" if usage.has_failed else "cordoned" if usage.is_cordoned else "in use",
            )
            for usage in broker.directories
        ],
    )
    print()
    print_heading("TOPICS")
    print_table(
        ("TOPIC", "LEADERS", "REPLICAS", "IN SYNC", "BYTES"),
        [(one["topic"], one["leaders"], one["replicas"], one["in_sync"], size_text(one["bytes"])) for one in topics],
    )
