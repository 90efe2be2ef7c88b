"""`sskafka topic produce`: produce records from lines of standard input, or in a given format."""

import asyncio
import sys
from collections import deque
from typing import Annotated

import typer

from sskafka.cli.completion import complete_topic
from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.failures import CommandError
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_item, talk
from sskafka.cli.record_format import FormatError, unescape
from sskafka.cli.record_input import InputFields, RecordCutter, read_pieces
from sskafka.client.accumulator import Delivery
from sskafka.client.config import ProducerConfig, configured
from sskafka.client.producer import ProducerEngine
from sskafka.records.compression import Compression
from sskafka.records.record import Headers

_DELIVERIES_AHEAD_MAX = 10_000


class Deliveries:
    """Futures of pending records, reported in the order in which they were sent."""

    def __init__(self, output: Format | None) -> None:
        self._output = output
        self._waiting: deque[asyncio.Future[Delivery]] = deque()
        self.count = 0

    async def add(self, delivery: asyncio.Future[Delivery]) -> None:
        self._waiting.append(delivery)
        while self._waiting and (self._waiting[0].done() or len(self._waiting) > _DELIVERIES_AHEAD_MAX):
            await self._report()

    async def finish(self) -> None:
        while self._waiting:
            await self._report()

    async def _report(self) -> None:
        delivery = await self._waiting.popleft()
        self.count += 1
        if self._output is not None and self._output.is_data:
            topic, partition = delivery.partition
            place = {"topic": topic, "partition": partition}
            print_item(self._output, {**place, "offset": delivery.offset, "timestamp": delivery.timestamp})
        elif self._output is Format.TABLE:
            print(f"{delivery.partition.partition} {delivery.offset}")


def produce(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC", help="Target topic; %t in the format overrides it.", autocompletion=complete_topic
        ),
    ],
    key: Annotated[str | None, typer.Option("--key", "-k", help="Key of every record.")] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="KEY:VALUE", help="Header of every record. Repeatable."),
    ] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p", help="Partition of every record.")] = None,
    input_format: Annotated[
        str | None, typer.Option("--input-format", "-f", help=r"How to cut the input, such as '%k\t%v\n'.")
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="Separator of key and value in a line; short for -f.")
    ] = None,
    tombstone: Annotated[bool, typer.Option("--tombstone", "-Z", help="Send empty values as null.")] = False,
    compression: Annotated[str, typer.Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")] = "none",
    acks: Annotated[str, typer.Option("--acks", help="all, 1 or 0.")] = "all",
    create: Annotated[
        bool, typer.Option("--allow-auto-topic-creation", help="Let the broker create a missing topic.")
    ] = False,
    report: Annotated[bool, typer.Option("--report", help="Print partition and offset of every record.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Produce records from standard input, one record a line unless -f is given."""
    cutter = _cutter(input_format, key_separator)
    client = client_properties(properties)
    asked = {"compression.type": compression, "acks": acks, "allow.auto.create.topics": str(create).lower()}
    config = configured(ProducerConfig, {**asked, **client})
    _check(config)
    template = Template(topic, key, _parse_headers(headers), partition, tombstone)
    deliveries = Deliveries(output if report or output.is_data else None)

    async def work() -> None:
        async with connected(bootstrap, client) as cluster, ProducerEngine(cluster, config) as producer:
            if not config.allow_auto_create_topics and not cutter.has_topic:  # also if nothing will be read
                await cluster.retrying(lambda: cluster.topic(topic))
            async for piece in read_pieces(sys.stdin.fileno(), cutter.record_end):
                await deliveries.add(await template.send(producer, _cut(cutter, piece)))
            await producer.flush()
            await deliveries.finish()

    run(work())
    talk(f"{deliveries.count} {'record' if deliveries.count == 1 else 'records'} produced to {topic}")


class Template:
    """The fixed fields of every record."""

    def __init__(self, topic: str, key: str | None, headers: Headers, partition: int | None, tombstone: bool) -> None:
        self._topic = topic
        self._key = None if key is None else key.encode()
        self._headers = headers
        self._partition = partition
        self._tombstone = tombstone

    async def send(self, producer: ProducerEngine, fields: InputFields) -> asyncio.Future[Delivery]:
        value = None if self._tombstone and not fields.value else fields.value
        return await producer.send(
            fields.topic or self._topic,
            value,
            key=self._key if fields.key is None else fields.key,
            headers=self._headers,
            partition=self._partition if fields.partition is None else fields.partition,
            timestamp=fields.timestamp,
        )


def _cutter(input_format: str | None, key_separator: str | None) -> RecordCutter:
    if input_format is not None and key_separator is not None:
        raise typer.BadParameter("give -f or -K, not both")
    if key_separator is not None:
        escaped = key_separator.replace("%", "%%")
        input_format = f"%k{escaped}%v"
    try:
        return RecordCutter(input_format or "%v")
    except FormatError as error:
        raise typer.BadParameter(str(error), param_hint="-f") from error


def _check(config: ProducerConfig) -> None:
    """Check the config before connecting. Invalid names are usage errors."""
    try:
        Compression.named(config.compression_type)
        assert config.required_acks is not None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _cut(cutter: RecordCutter, piece: bytes) -> InputFields:
    try:
        return cutter.cut(piece)
    except (FormatError, UnicodeDecodeError) as error:
        raise CommandError(
            f"the input does not fit its format: {error}", "give -f or -K that matches the input"
        ) from error


def _parse_headers(pairs: list[str] | None) -> Headers:
    """Parse `key:value` or `key=value`, split at the first separator. Without a separator the value is null."""
    return tuple(_parse_header(pair) for pair in pairs or ())


def _parse_header(pair: str) -> tuple[str, bytes | None]:
    mark = min((pair.find(mark) for mark in ":=" if mark in pair), default=-1)
    if mark < 0:
        return pair, None
    return pair[:mark], unescape(pair[mark + 1 :])
