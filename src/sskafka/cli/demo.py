"""`sskafka demo`: three brokers, simulated user clicks, and a Spark pipeline that turns them into sessions.

    clicks ─> topic `clicks` ─> Spark: the shipped pipeline `sessions` ─┬─> Parquet
                                                                        └─> topic `sessions` ─> the table on screen

Brokers are child processes. Spark runs in a thread of this process with its JVM as a child. The click generator and the
table are tasks. Ctrl+C stops clicks and table, then Spark, then the brokers, and removes the temporary directory.
"""

import asyncio
import json
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sskafka.cli.cluster.homes import find_cluster, wanted_ports
from sskafka.cli.cluster.ports import ADR, ANY_PORT, HOST, HTTP, KAFKA, PortOption, Server
from sskafka.cli.cluster.readiness import Member
from sskafka.cli.cluster.up import run_cluster
from sskafka.cli.demo_screen import Screen
from sskafka.cli.failures import CommandError
from sskafka.cli.output import talk
from sskafka.client.async_clients import AsyncConsumer
from sskafka.client.cluster import Cluster
from sskafka.client.errors import UnknownTopicError
from sskafka.client.producer import ProducerEngine
from sskafka.model.extras import install_extra

if TYPE_CHECKING:
    from sskafka.pipelines.files.pipeline import Pipeline

app = typer.Typer(add_completion=False, rich_markup_mode=None)

BROKERS = 3
USERS = 200
TICK_S = 0.1
POLL_MS = 500
SEED = 2011
TRIGGER = "1 second"
"""A session is shown two micro-batches after it has ended: people wait for it."""
SPARK_CONF = {
    "spark.ui.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""With these options Java starts sooner: a demo ends before Java's optimizing compiler has paid off."""
SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


@app.command()
def demo(
    rate: Annotated[int, typer.Option("--rate", min=1, help="Clicks a second.")] = 50,
    results: Annotated[
        int, typer.Option("--results", min=0, help="Exit after this many sessions; 0: run until Ctrl+C.")
    ] = 0,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Data directory; a temporary one if not given.")
    ] = None,
    kafka_port: Annotated[
        int | None, typer.Option("--kafka-port", min=0, help="Kafka port of broker 1; default 9092, or any free ports.")
    ] = None,
    http_port: Annotated[
        int | None, typer.Option("--http-port", min=0, help="HTTP port of broker 1; default 8001, or any free ports.")
    ] = None,
) -> None:
    """Start three brokers, a stream of clicks and a Spark pipeline that finds sessions in it, and show the results."""
    _refuse_without_spark()
    with ExitStack() as stack:
        home = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sskafka-demo-")))
        cluster = find_cluster(home / "cluster", BROKERS, BROKERS)
        options = {
            KAFKA: PortOption(_first_port(KAFKA, kafka_port)),
            HTTP: PortOption(_first_port(HTTP, http_port)),
            ADR: PortOption(is_open=False),
        }
        _launch_java()
        workload = Demo(home.resolve(), rate, results)
        code = asyncio.run(run_cluster(cluster, wanted_ports(cluster, options), SETTINGS, workload=workload.run))
    raise typer.Exit(code)


def _refuse_without_spark() -> None:
    for module in ("pyspark", "pyarrow", "yaml"):
        if find_spec(module) is None:
            raise CommandError(f"the demo needs {module}", install_extra("spark"))


def _launch_java() -> None:
    """Java starts while the brokers do."""
    from sskafka.pipelines.session import SessionSettings, launch_java_early  # noqa: PLC0415  needs the extra

    launch_java_early(SessionSettings(conf=SPARK_CONF))


def _first_port(server: Server, wanted: int | None) -> int:
    """Return the requested port. Otherwise the default ports if all are free, or any free ports."""
    if wanted is not None:
        return wanted
    for number in range(BROKERS):
        port = server.default_first_port + number
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                talk(f"port {port} is in use; using other ports")
                return ANY_PORT
    return server.default_first_port


class Demo:
    """The tasks that run beside the brokers."""

    def __init__(self, home: Path, rate: int, results: int) -> None:
        self._home = home
        self._rate = rate
        self._results = results
        self._began = time.monotonic()
        self._screen = Screen(self._tell)

    def _tell(self, text: str) -> None:
        talk(f"[{time.monotonic() - self._began:5.1f} s] {text}")

    async def run(self, members: Sequence[Member], stopped: "asyncio.Future[signal.Signals]") -> None:
        bootstrap = ",".join(str(member.address) for member in members)
        self._tell(f"{len(members)} brokers are ready")
        pipeline = await self._prepared(bootstrap)
        spark = SparkThread(pipeline, bootstrap, self._tell, self._screen)
        self._screen.introduce(bootstrap, [f"http://{member.http}/" for member in members if member.http], self._home)
        tasks: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(work)
            for work in (self._click(bootstrap, pipeline), self._show(bootstrap, pipeline), spark.ended())
        ]
        try:
            await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._screen.close()
            await self._end(tasks, spark)

    async def _end(self, tasks: "list[asyncio.Future[Any]]", spark: "SparkThread") -> None:
        """Stop Spark after the current micro-batch, while the brokers still run. Raise the error of a failed task."""
        self._tell("stopping the pipeline; press Ctrl+C again to stop everything at once")
        ended_before = [task for task in tasks if task.done()]
        for task in tasks[:-1]:
            task.cancel()
        spark.stop()
        await asyncio.wait(tasks)
        for task in (*ended_before, tasks[-1]):
            task.result()

    async def _prepared(self, bootstrap: str) -> "Pipeline":
        from sskafka.pipelines.files.pipeline import Trigger  # noqa: PLC0415  needs the extra
        from sskafka.pipelines.shipped import load_shipped  # noqa: PLC0415  see above
        from sskafka.pipelines.shipped.selfcheck import produce, topics_of  # noqa: PLC0415  see above

        pipeline = replace(load_shipped("sessions", self._home), trigger=Trigger(TRIGGER))
        await produce(bootstrap, topics_of(pipeline), {})
        return pipeline

    async def _click(self, bootstrap: str, pipeline: "Pipeline") -> None:
        """Produce clicks. Their timestamps run faster than real time: an hour of clicks takes some seconds."""
        from sskafka.pipelines.shipped.selfcheck import send, topics_of  # noqa: PLC0415  needs the extra
        from sskafka.pipelines.shipped.sessions import click_stream  # noqa: PLC0415  see above

        topic = topics_of(pipeline)["clicks"]
        clicks = click_stream(SEED, USERS, datetime.now(UTC).replace(microsecond=0))
        async with Cluster(bootstrap) as cluster, ProducerEngine(cluster) as producer:
            due = 0.0
            while True:
                due += self._rate * TICK_S
                for click in islice(clicks, int(due)):
                    await send(producer, topic, click.message())
                self._screen.clicks += int(due)
                due -= int(due)
                await asyncio.sleep(TICK_S)

    async def _show(self, bootstrap: str, pipeline: "Pipeline") -> None:
        """Show the sessions, consumed from their topic. Return when there are enough."""
        from sskafka.pipelines.files.sink import TopicSink  # noqa: PLC0415  needs the extra
        from sskafka.pipelines.shipped.sessions import session_of  # noqa: PLC0415  see above

        topic = next(sink.topic for sink in pipeline.sinks if isinstance(sink, TopicSink))
        async with AsyncConsumer(bootstrap, isolation_level="read_committed") as consumer:
            while not consumer.subscriptions:  # the pipeline creates the topic
                try:
                    await consumer.subscribe(topic)
                except UnknownTopicError:
                    await asyncio.sleep(TICK_S)
            while not self._results or self._screen.sessions < self._results:
                records = await consumer.poll(timeout_ms=POLL_MS)
                self._screen.show([session_of(json.loads(record.value)) for record in records if record.value])


class SparkThread:
    """Runs the pipeline in a daemon thread, so that a second Ctrl+C can exit without waiting for it."""

    def __init__(self, pipeline: "Pipeline", bootstrap: str, tell: Any, screen: Screen) -> None:
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._tell = tell
        self._screen = screen
        self._stop = threading.Event()
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        threading.Thread(target=self._work, args=(loop,), name="demo-pipeline", daemon=True).start()

    async def ended(self) -> None:
        await asyncio.shield(self._ended)

    def stop(self) -> None:
        self._stop.set()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        failure: BaseException | None = None
        try:
            self._run()
        except BaseException as error:  # reported by the event loop, whatever it is
            failure = error
        loop.call_soon_threadsafe(self._settle, failure)

    def _settle(self, failure: BaseException | None) -> None:
        if failure is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(failure)

    def _run(self) -> None:
        from sskafka.pipelines.runner.run import RunSettings, run_pipeline  # noqa: PLC0415  needs the extra
        from sskafka.pipelines.session import stop_session  # noqa: PLC0415  see above

        settings = RunSettings(self._bootstrap, conf=SPARK_CONF)
        try:
            run_pipeline(self._pipeline, settings, tell=self._tell, on_progress=self._on_progress, stop=self._stop)
        finally:
            stop_session()

    def _on_progress(self, queries: Sequence[Any]) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415  it runs

        session = SparkSession.getActiveSession()
        if session is not None:
            self._screen.spark_address = session.sparkContext.uiWebUrl or ""
        self._screen.progress = queries
