"""`sskafka perf produce` and `perf consume`: load a topic and report like kafka-producer-perf-test and
kafka-consumer-perf-test.
"""

import time
from datetime import datetime
from typing import Annotated

import typer

from sskafka.cli.connecting import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    PropertiesOption,
    client_properties,
    connected,
    run,
)
from sskafka.cli.options import FormatOption
from sskafka.cli.output import Format, print_data, talk
from sskafka.client.config import ProducerConfig, configured
from sskafka.evaluation.grid import shares_of
from sskafka.evaluation.load import NO_LIMIT, LoadSpec, Window
from sskafka.evaluation.workers import Sum, Totals, run_workers

REPORT_EVERY_S = 5.0
_MEBIBYTE = 2**20

TopicArgument = Annotated[str | None, typer.Argument(metavar="TOPIC", show_default=False)]
TopicOption = Annotated[str | None, typer.Option("--topic", hidden=True)]


def produce(
    topic: TopicArgument = None,
    named_topic: TopicOption = None,
    records: Annotated[int, typer.Option("--num-records", "-n", min=1, help="Total number of records.")] = 100_000,
    record_size: Annotated[int, typer.Option("--record-size", "-s", min=0, help="Size of a value in bytes.")] = 100,
    throughput: Annotated[
        float, typer.Option("--throughput", help="Maximum records a second in total; -1: unlimited.")
    ] = NO_LIMIT,
    producers: Annotated[int, typer.Option("--producers", min=1, help="Processes that share the work.")] = 1,
    compression: Annotated[str, typer.Option("--compression", "-z", help="none, gzip, snappy, lz4 or zstd.")] = "none",
    acks: Annotated[str, typer.Option("--acks", help="all, 1 or 0.")] = "all",
    producer_props: Annotated[
        list[str] | None, typer.Option("--producer-props", metavar="KEY=VALUE", hidden=True, help="As -X.")
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Produce records as fast as possible, or at a rate, and report the throughput."""
    name = _topic(topic, named_topic)
    asked = {"compression.type": compression, "acks": acks}
    client = asked | client_properties([*(properties or ()), *(producer_props or ())])
    _check(client)
    spec = LoadSpec("produce", bootstrap, name, record_size=record_size, properties=client)
    share = throughput / producers if throughput > 0 else NO_LIMIT
    specs = [spec._replace(records=count, records_per_second=share) for count in _divided(records, producers)]
    reporter = Reporter(is_silent=output.is_data)

    async def work() -> Totals:
        async with connected(bootstrap, client):
            return await run_workers(specs, reporter.add)

    totals = run(work())
    if output.is_data:
        print_data(output, _as_json(totals))
    else:
        print(produce_summary(totals))


def consume(
    topic: TopicArgument = None,
    named_topic: TopicOption = None,
    records: Annotated[
        int, typer.Option("--messages", "--num-records", "-n", min=1, help="Total number of records.")
    ] = 100_000,
    consumers: Annotated[int, typer.Option("--consumers", min=1, help="Processes that share the partitions.")] = 1,
    timeout_ms: Annotated[
        int, typer.Option("--timeout", min=1, help="Exit after this many milliseconds without a record.")
    ] = 10_000,
    from_latest: Annotated[bool, typer.Option("--from-latest", help="Only new records.")] = False,
    hide_header: Annotated[bool, typer.Option("--hide-header", help="Do not print the column names.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Consume records as fast as possible and report the throughput."""
    name = _topic(topic, named_topic)
    client = client_properties(properties)
    began = time.time()

    async def work() -> Totals:
        async with connected(bootstrap, client) as cluster:
            partitions = len((await cluster.topic(name)).partitions)
        count = min(consumers, partitions)
        spec = LoadSpec(
            "consume", bootstrap, name, from_latest=from_latest, poll_timeout_ms=timeout_ms, properties=client
        )
        return await run_workers(
            [
                spec._replace(records=share, partitions=shares_of(partitions, count, number))
                for number, share in enumerate(_divided(records, count))
            ]
        )

    totals = run(work())
    if totals.records < records:
        talk(f"warning: only {totals.records} of {records} records arrived before the timeout")
    if output.is_data:
        print_data(output, _as_json(totals))
        return
    if not hide_header:
        print(CONSUME_HEADER)
    print(consume_summary(totals, began))


class Reporter:
    """Prints a line every five seconds."""

    def __init__(self, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._began_s = time.monotonic()
        self._sum = Sum()

    def add(self, window: Window) -> None:
        self._sum.add(window)
        seconds = time.monotonic() - self._began_s
        if seconds >= REPORT_EVERY_S and not self._is_silent:
            print(window_line(self._sum, seconds), flush=True)
            self._began_s = time.monotonic()
            self._sum = Sum()


def window_line(done: Sum, seconds: float) -> str:
    return (
        f"{done.records} records sent, {done.records / seconds:.1f} records/sec "
        f"({done.size_bytes / _MEBIBYTE / seconds:.2f} MB/sec), {done.latencies.average_ms:.1f} ms avg latency, "
        f"{done.latencies.max_ms:.1f} ms max latency."
    )


def produce_summary(totals: Totals) -> str:
    latencies = totals.latencies
    rate = f"{totals.records_per_second:f} records/sec ({totals.mb_per_second:.2f} MB/sec)"
    times = f"{latencies.average_ms:.2f} ms avg latency, {latencies.max_ms:.2f} ms max latency"
    percentiles = [f"{latencies.percentile_ms(percent):.0f} ms {percent:g}th" for percent in (50, 95, 99, 99.9)]
    return f"{totals.records} records sent, {rate}, {times}, {', '.join(percentiles)}."


CONSUME_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def consume_summary(totals: Totals, began: float) -> str:
    """Return the summary line. Without a group there are no rebalances: all of the time is fetch time."""
    megabytes, fetch_ms = totals.size_bytes / _MEBIBYTE, int(totals.seconds * 1000)
    rates = (f"{totals.mb_per_second:.4f}", f"{totals.records_per_second:.4f}")
    fields = [
        _moment(began),
        _moment(began + totals.seconds),
        f"{megabytes:.4f}",
        rates[0],
        str(totals.records),
        rates[1],
    ]
    return ", ".join([*fields, "0", str(fetch_ms), *rates])


def _moment(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03}"


def _as_json(totals: Totals) -> dict[str, float]:
    latencies = totals.latencies
    return {
        "records": totals.records,
        "bytes": totals.size_bytes,
        "seconds": round(totals.seconds, 3),
        "records_per_second": round(totals.records_per_second, 1),
        "mb_per_second": round(totals.mb_per_second, 3),
        "latency_avg_ms": round(latencies.average_ms, 3),
        "latency_p50_ms": round(latencies.percentile_ms(50), 3),
        "latency_p95_ms": round(latencies.percentile_ms(95), 3),
        "latency_p99_ms": round(latencies.percentile_ms(99), 3),
        "latency_p999_ms": round(latencies.percentile_ms(99.9), 3),
        "latency_max_ms": round(latencies.max_ms, 3),
    }


def _divided(total: int, parts: int) -> list[int]:
    """Split `total` into shares that differ by at most one. Empty shares are left out."""
    return [share for number in range(parts) if (share := total // parts + (number < total % parts))]


def _topic(argument: str | None, option: str | None) -> str:
    name = argument or option
    if name is None:
        raise typer.BadParameter("name a topic", param_hint="TOPIC")
    return name


def _check(client: dict[str, str]) -> None:
    """Check client properties before connecting. Invalid names are usage errors."""
    from sskafka.records.compression import Compression  # noqa: PLC0415

    config = configured(ProducerConfig, client)
    try:
        Compression.named(config.compression_type)
        assert config.required_acks is not None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
