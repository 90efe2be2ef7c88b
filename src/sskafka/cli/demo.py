"""`sskafka demo`: a broker, a topic, records there and back, and then a broker to play with."""

import asyncio
import errno
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from sskafka.broker import Broker
from sskafka.cli.output import talk
from sskafka.cli.start import configure_logging, handle_stop_signals, until_stopped
from sskafka.client.admin import Admin, NewTopic
from sskafka.client.cluster import Cluster
from sskafka.client.consumer import Consumer
from sskafka.client.producer import Producer
from sskafka.model.errors import KafkaError
from sskafka.model.ids import TopicPartition
from sskafka.model.settings import Settings
from sskafka.servers.event_loop import new_event_loop

app = typer.Typer(add_completion=False, rich_markup_mode=None)

TOPIC = "greetings"
PARTITIONS = 3
_GREETINGS = (("en", "Hello"), ("de", "Hallo"), ("fr", "Bonjour"), ("es", "Hola"), ("it", "Ciao"), ("pl", "Cześć"))


@app.command()
def demo(
    port: Annotated[
        int, typer.Option("--port", "-p", help="Kafka port; another one is taken when it is in use.")
    ] = 9092,
    once: Annotated[bool, typer.Option("--once", help="Leave instead of staying up.")] = False,
) -> None:
    """Start a broker, produce and consume, and stay up for you to try."""
    configure_logging("warning")
    with TemporaryDirectory(prefix="sskafka-demo-") as directory, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_demo(Path(directory), port, once))


async def _demo(directory: Path, port: int, once: bool) -> None:
    stop: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    handle_stop_signals(stop)
    async with AsyncExitStack() as stack:
        broker = await _start(directory, port)
        stack.push_async_callback(broker.stop)
        print(f"A broker serves Kafka clients at {broker.bootstrap_servers}")
        await _greet(broker.bootstrap_servers)
        if once:
            return
        _invite(broker.bootstrap_servers)
        await until_stopped(broker, stop)
        talk("stopping; the data of this demo goes with it")


async def _start(directory: Path, port: int) -> Broker:
    broker = Broker(_settings(directory, port))
    try:
        await broker.start()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        talk(f"port {port} is taken; another one will do")
        broker = Broker(_settings(directory, 0))
        await broker.start()
    return broker


def _settings(directory: Path, port: int) -> Settings:
    chosen = {"node.id": "1", "listeners": f"PLAINTEXT://localhost:{port}", "log.dirs": str(directory)}
    return Settings.resolve(overrides=chosen)


async def _greet(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster:
        for outcome in (await Admin(cluster).create_topics([NewTopic(TOPIC, PARTITIONS)])).values():
            if isinstance(outcome, KafkaError):
                raise outcome
        print(f"Topic {TOPIC} has {PARTITIONS} partitions; a record's key decides which one it goes to:")
        async with Producer(cluster) as producer:
            for language, greeting in _GREETINGS:
                delivery = await (await producer.send(TOPIC, greeting.encode(), key=language.encode()))
                place = f"partition {delivery.partition.partition}, offset {delivery.offset}"
                print(f"  produced {language}={greeting:<8} to {place}")
        await _read_back(cluster)


async def _read_back(cluster: Cluster) -> None:
    print("Read back:")
    async with Consumer(cluster) as consumer:
        consumer.assign({TopicPartition(TOPIC, partition): 0 for partition in range(PARTITIONS)})
        count = 0
        while count < len(_GREETINGS):
            for record in await consumer.poll():
                key, value = (record.key or b"").decode(), (record.value or b"").decode()
                print(f"  consumed {key}={value:<8} from partition {record.partition}, offset {record.offset}")
                count += 1


def _invite(bootstrap: str) -> None:
    print(
        f"""
The broker stays up until Ctrl+C. In another terminal, with any Kafka client or with these:

  export SSKAFKA_BOOTSTRAP={bootstrap}
  sskafka topic describe {TOPIC}
  echo 'pt:Olá' | sskafka topic produce {TOPIC} -K :
  sskafka topic consume {TOPIC} -f '%p %o %k %v\\n'
""",
        flush=True,
    )
