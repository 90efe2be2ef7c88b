"""Performance of the HTTP server, and its effect on Kafka clients: `python -m benchmarks.http_calls`.

One broker with its HTTP process, on loopback. Callers are processes with one connection each, so that they do not block
each other; on a machine with few cores they compete with the broker for CPU time. The second table shows the round trip
of a Kafka client that produces one small record after another with acks=1: first alone, then while HTTP callers send as
fast as they can.
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.brokers import HOST, free_ports, sskafka_kind
from benchmarks.machine import describe
from benchmarks.processes import read_rss_bytes
from sskafka.client.connection import Address, connect
from sskafka.records.builder import NewRecord, build_batch
from sskafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

TOPIC = "measured"
PAYLOAD = "x" * 100
CALLERS_MAX = 16
PROBE_PAUSE_S = 0.001
PRODUCE_VERSION = 9  # a version with topic names


class Call(NamedTuple):
    """A request that callers send repeatedly."""

    title: str
    path: str
    body: dict[str, Any]
    records: int
    callers: int = 1
    keeps_alive: bool = True


class Measured(NamedTuple):
    requests_per_s: float
    p50_ms: float
    p99_ms: float


def single(acks: str) -> dict[str, Any]:
    return {"topic_partition": f"{TOPIC}-1", "payload": PAYLOAD, "acks": acks}


def batch(size: int) -> dict[str, Any]:
    return {"topic_partition": f"{TOPIC}-1", "acks": "1", "records": [{"payload": PAYLOAD}] * size}


def read(size: int) -> dict[str, Any]:
    return {"topic_partition": f"{TOPIC}-1", "last_offset": -1, "max_batch_size": size}


PRODUCE, CONSUME = "/data/v1/produce", "/data/v1/consume"
CALLS = (
    Call("produce, a connection each", PRODUCE, single("1"), 1, keeps_alive=False),
    Call("produce, kept alive", PRODUCE, single("1"), 1),
    Call("produce, kept alive, 8 callers", PRODUCE, single("1"), 1, callers=8),
    Call("produce, acks all, kept alive", PRODUCE, single("all"), 1),
    Call("produce, batches of 100", PRODUCE, batch(100), 100),
    Call("produce, batches of 1000", PRODUCE, batch(1000), 1000),
    Call("consume 1", CONSUME, read(1), 1),
    Call("consume 100", CONSUME, read(100), 100),
    Call("consume 1000", CONSUME, read(1000), 1000),
)


def call_repeatedly(address: str, call: Call, seconds: float) -> list[float]:
    """Return the latencies of one caller, in seconds."""
    body = json.dumps(call.body)
    latencies = []
    connection = http.client.HTTPConnection(address)
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        connection.request("POST", call.path, body)
        response = connection.getresponse()
        response.read()
        assert response.status in {200, 204}, response.status
        if not call.keeps_alive:
            connection.close()
        latencies.append(time.perf_counter() - began)
    connection.close()
    return latencies


def measure(pool: Pool, address: str, call: Call, seconds: float) -> Measured:
    call_repeatedly(address, call, seconds / 10)
    lists = pool.starmap(call_repeatedly, [(address, call, seconds)] * call.callers)
    return summary([latency for latencies in lists for latency in latencies], seconds)


def summary(latencies: Sequence[float], seconds: float) -> Measured:
    hundredths = statistics.quantiles(latencies, n=100)
    return Measured(len(latencies) / seconds, hundredths[49] * 1000, hundredths[98] * 1000)


async def probe(port: int, seconds: float) -> Measured:
    """Measure a Kafka client that sends about one record per millisecond."""
    connection = await connect(Address(HOST, port))
    record = build_batch([NewRecord(None, b"x" * 10, (), int(time.time() * 1000))])
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(1, record)])],
    )
    latencies = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        response = await connection.request(request, ProduceResponse, version=PRODUCE_VERSION)
        assert response.responses[0].partition_responses[0].error_code == 0
        latencies.append(time.perf_counter() - began)
        await asyncio.sleep(PROBE_PAUSE_S)
    await connection.close()
    return summary(latencies, seconds)


def probe_with_callers(pool: Pool, address: str, port: int, call: Call, seconds: float) -> Measured:
    """Measure the Kafka client while HTTP callers send as fast as they can."""
    loads = pool.starmap_async(call_repeatedly, [(address, call, seconds + 1)] * call.callers)
    measured = asyncio.run(probe(port, seconds))
    loads.get()
    return measured


@contextmanager
def running_broker() -> Iterator[tuple[int, str, int]]:
    """Yield Kafka port, HTTP address and pid of a broker, once both servers accept connections."""
    address = f"{HOST}:{free_ports(1)[0]}"
    with (
        tempfile.TemporaryDirectory(prefix="sskafka-http-") as directory,
        sskafka_kind().running(Path(directory), {"http.listener": address}) as broker,
    ):
        _create_topic(address)
        yield broker.port, address, broker.pid


def _create_topic(address: str) -> None:
    deadline = time.monotonic() + 30
    body = json.dumps({"topic_name": TOPIC, "partition_count": 2})
    while True:
        connection = http.client.HTTPConnection(address, timeout=30)
        try:
            connection.request("POST", "/admin/v1/topics", body)
            assert connection.getresponse().status == 201
            return
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "the HTTP server does not accept connections"
            time.sleep(0.05)
        finally:
            connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_calls", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each row")
    seconds = parser.parse_args().seconds
    for name, value in describe(f"{seconds:g} s a row", "python -m benchmarks.http_calls").items():
        print(f"{name}: {value}")
    with multiprocessing.get_context("spawn").Pool(CALLERS_MAX) as pool, running_broker() as (port, address, pid):
        print("\n| HTTP | requests/s | records/s | p50 ms | p99 ms |\n|---|--:|--:|--:|--:|")
        for call in CALLS:
            found = measure(pool, address, call, seconds)
            records_per_s = found.requests_per_s * call.records
            print(
                f"| {call.title} | {found.requests_per_s:,.0f} | {records_per_s:,.0f} "
                f"| {found.p50_ms:.2f} | {found.p99_ms:.2f} |"
            )
        print("\n| a Kafka client's produce | p50 ms | p99 ms |\n|---|--:|--:|")
        alone = asyncio.run(probe(port, seconds))
        print(f"| alone | {alone.p50_ms:.2f} | {alone.p99_ms:.2f} |")
        for call in (CALLS[1], CALLS[2], CALLS[8]):
            loaded = probe_with_callers(pool, address, port, call, seconds)
            print(f"| with HTTP: {call.title} | {loaded.p50_ms:.2f} | {loaded.p99_ms:.2f} |")
        print(f"\nBroker and HTTP process together: {read_rss_bytes(pid) / 1e6:.0f} MB resident.")


if __name__ == "__main__":
    main()
