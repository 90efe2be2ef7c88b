"""`sskafka topic consume`: print the records of topics as they arrive."""

import json
import sys
from base64 import b64encode
from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Any, BinaryIO

import typer

from sskafka.cli.completion import complete_group, complete_topic
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, talk
from sskafka.cli.record_format import FormatError, RecordPrinter
from sskafka.cli.topic.consume_group import GroupRead, consume_as_member, group_properties
from sskafka.cli.yaml_text import yaml_text
from sskafka.client.cluster import Cluster
from sskafka.client.config import ConsumerConfig, configured
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.errors import UnknownPartitionError
from sskafka.client.fetched import ConsumedRecord
from sskafka.client.offset_range import Anchor, Bound, OffsetRange, Span, parse_offset_range, resolve
from sskafka.model.ids import TopicPartition
from sskafka.runtime.clock import SystemClock

_POLL_MS = 1000


def consume(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", show_default=False, autocompletion=complete_topic)
    ] = None,
    topic: Annotated[list[str] | None, typer.Option("--topic", hidden=True)] = None,
    offset: Annotated[
        str, typer.Option("--offset", "-o", help="start, end, N, +N, -N, @TIME, FROM:TO (TO is not included).")
    ] = "start",
    number: Annotated[
        int | None, typer.Option("--num", "-n", "--max-messages", min=0, help="Stop after this number of records.")
    ] = None,
    partitions: Annotated[
        list[int] | None, typer.Option("--partitions", "-p", "--partition", help="Only these partitions. Repeatable.")
    ] = None,
    record_format: Annotated[
        str | None, typer.Option("-f", "--record-format", help=r"How to print a record, such as '%p %o %k %v\n'.")
    ] = None,
    stop_at_end: Annotated[
        bool, typer.Option("--stop-at-end", "-e", help="Stop at the current end of the partitions.")
    ] = False,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", hidden=True)] = False,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Return only committed transactional records.")
    ] = False,
    any_replica: Annotated[
        bool, typer.Option("--any-replica", help="Read from any in-sync replica, not only from leaders.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            help="Read as a member of this group, and commit what was printed.",
            autocompletion=complete_group,
        ),
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    r"""Consume topics: values, one a line, unless -f or --output says otherwise.

    With -g, members of the group share the partitions and start where the group has committed. A TOPIC that starts
    with ^ is then a regular expression. -X group.protocol=consumer selects the newer protocol.

    Verbs of -f: %t topic, %p partition, %o offset, %d timestamp, %k key, %v value, %h headers, %K %V %H sizes, %e
    leader epoch, %i count, %k{hex}, %v{base64}, %d{strftime[%F %T]}, %h{%k=%v }, %%, and the escapes \n \t \r \\ \xHH.
    """
    names = [*(topics or ()), *(topic or ())]
    if not names:
        raise typer.BadParameter("name a topic", param_hint="TOPIC")
    wanted = _offset_range("start" if from_beginning else offset, stop_at_end)
    printer = _printer(record_format, output)
    client = client_properties(properties)
    config = _config(client, read_committed)
    if group := group or client.get("group.id"):
        asked = {"isolation.level": "read_committed"} if read_committed else {}
        member = {**asked, **client, **group_properties(group, wanted, partitions)}
        read = GroupRead(names, member, number, stops_at_end=wanted.stop is not None, any_replica=any_replica)
        if not run(consume_as_member(bootstrap, read, printer, sys.stdout.buffer)) and number != 0:
            talk(f"no new records were found; `sskafka group describe {group}` shows the committed offsets")
        return

    async def work() -> None:
        async with connected(bootstrap, client) as cluster, ConsumerEngine(cluster, config) as consumer:
            spans = await resolve(cluster, wanted, await _partitions(cluster, names, partitions), config.isolation)
            _assign(consumer, spans, any_replica=any_replica)
            if not await _copy(consumer, spans, number, printer, sys.stdout.buffer) and number != 0:
                talk(f"no records were found; `sskafka topic describe {names[0]} -p` shows the offsets")

    run(work())


class FieldsPrinter:
    """Prints one JSON object a line, or the elements of a YAML list.

    Bytes that are not UTF-8 go into `key_base64` and `value_base64`."""

    def __init__(self, output: Format) -> None:
        self._output = output

    def line(self, record: ConsumedRecord) -> bytes:
        fields: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            **_json_bytes("key", record.key),
            **_json_bytes("value", record.value),
            "headers": [{"key": key, **_json_bytes("value", value)} for key, value in record.headers],
        }
        return yaml_text([fields]).encode() if self._output is Format.YAML else json.dumps(fields).encode() + b"\n"


def _json_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}


def _offset_range(text: str, stop_at_end: bool) -> OffsetRange:
    try:
        wanted = parse_offset_range(text, SystemClock().now_ms())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="-o") from error
    if stop_at_end and wanted.stop is None:
        return wanted._replace(stop=Bound(Anchor.END))
    return wanted


def _printer(record_format: str | None, output: Format) -> RecordPrinter | FieldsPrinter:
    if output.is_data:
        return FieldsPrinter(output)
    try:
        return RecordPrinter(r"%v\n" if record_format is None else record_format)
    except FormatError as error:
        raise typer.BadParameter(str(error), param_hint="-f") from error


def _config(client: dict[str, str], read_committed: bool) -> ConsumerConfig:
    asked = {"isolation.level": "read_committed"} if read_committed else {}
    return configured(ConsumerConfig, {"auto.offset.reset": "earliest", **asked, **client})


async def _partitions(cluster: Cluster, names: Iterable[str], numbers: list[int] | None) -> list[TopicPartition]:
    chosen = []
    for name in names:
        there = sorted((await cluster.topic(name)).partitions)
        for number in numbers or there:
            if number not in there:
                raise UnknownPartitionError(name, number, len(there))
            chosen.append(TopicPartition(name, number))
    return chosen


def _assign(consumer: ConsumerEngine, spans: dict[TopicPartition, Span], *, any_replica: bool) -> None:
    """Assign the partitions. A partition whose stop is its start is done already."""
    offsets = {key: span.start for key, span in spans.items() if span.stop is None or span.start < span.stop}
    consumer.assign(offsets, any_replica=any_replica)


async def _copy(
    consumer: ConsumerEngine,
    spans: dict[TopicPartition, Span],
    number: int | None,
    printer: RecordPrinter | FieldsPrinter,
    out: BinaryIO,
) -> int:
    """Print records until every partition has reached its stop or `number` records are printed; return their number."""
    stops = {partition: span.stop for partition, span in spans.items()}
    left = number
    printed = 0
    while consumer.assignment and left != 0:
        records = (record for record in await consumer.poll(_POLL_MS) if _is_before(record, stops))
        lines = [printer.line(record) for record in islice(records, left)]
        out.write(b"".join(lines))
        out.flush()
        left = None if left is None else left - len(lines)
        printed += len(lines)
        for partition in consumer.assignment:
            stop = stops[partition]
            if stop is not None and consumer.position(partition) >= stop:
                consumer.unassign(partition)
    return printed


def _is_before(record: ConsumedRecord, stops: dict[TopicPartition, int | None]) -> bool:
    stop = stops[TopicPartition(record.topic, record.partition)]
    return stop is None or record.offset < stop
