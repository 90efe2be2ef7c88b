"""A process that generates one load: `python -m sskafka.evaluation.worker`, controlled through standard input.

    in     the LoadSpec as one line of JSON; later any line: go
    out    {"ready": true}, then one Window per line, then {"done": true} or {"error": "..."}

Waiting for "go" lets many workers start at the same time.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any, Protocol

from sskafka.client.cluster import Cluster
from sskafka.client.config import ConnectionConfig, ConsumerConfig, ProducerConfig, configured
from sskafka.client.consumer import ConsumerEngine
from sskafka.client.producer import ProducerEngine
from sskafka.evaluation.batch_load import BatchConsumerLoad, BatchProducerLoad
from sskafka.evaluation.load import ConsumerLoad, LoadSpec, ProducerLoad, Report


class Load(Protocol):
    async def prepare(self) -> None:
        """Do everything that the first record would otherwise wait for."""
        ...

    async def run(self, report: Report) -> None: ...


async def work(spec: LoadSpec) -> None:
    async with AsyncExitStack() as stack:
        load = await open_load(spec, stack)
        await load.prepare()
        write_line({"ready": True})
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        await load.run(lambda window: write_line(window.to_json()))


async def open_load(spec: LoadSpec, stack: AsyncExitStack) -> Load:
    """Open the clients and return the load; `stack` closes them."""
    cluster = await stack.enter_async_context(Cluster(spec.bootstrap, configured(ConnectionConfig, spec.properties)))
    writing = configured(ProducerConfig, spec.properties)
    reading = configured(ConsumerConfig, {"auto.offset.reset": "earliest", **spec.properties})
    match spec.kind, spec.is_by_batch:
        case "produce", True:
            return BatchProducerLoad(spec, cluster, writing)
        case "produce", False:
            return ProducerLoad(spec, await stack.enter_async_context(ProducerEngine(cluster, writing)))
        case "consume", True:
            return BatchConsumerLoad(spec, cluster, reading)
        case _:
            return ConsumerLoad(spec, cluster, await stack.enter_async_context(ConsumerEngine(cluster, reading)))


def write_line(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> int:
    spec = LoadSpec.from_json(json.loads(sys.stdin.readline()))
    try:
        asyncio.run(work(spec))
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # process boundary: report the error to the parent process
        write_line({"error": str(error) or type(error).__name__})
        return 1
    write_line({"done": True})
    return 0


if __name__ == "__main__":
    sys.exit(main())
