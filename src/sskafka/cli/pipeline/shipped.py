"""`sskafka pipeline check` and `generate`: shipped pipelines, and input records with known results."""

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from sskafka.cli.connecting import DEFAULT_BOOTSTRAP, BootstrapOption, PropertiesOption, client_properties
from sskafka.cli.failures import CommandError
from sskafka.cli.output import print_heading, talk
from sskafka.cli.usage import UsageError, key_values

if TYPE_CHECKING:
    from sskafka.pipelines.files.pipeline import Pipeline

NamesArgument = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Bundled pipelines; default: all.")]
RecordsOption = Annotated[int, typer.Option("--records", "-n", min=20, help="Approximate number of records.")]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed generates the same records.")]
MasterOption = Annotated[str, typer.Option("--master", help="Spark's master; default local[*].")]
TopicOption = Annotated[
    list[str] | None, typer.Option("--topic", metavar="TABLE=TOPIC", help="Another topic for a table. Repeatable.")
]


def check(
    names: NamesArgument = None,
    records: RecordsOption = 1_000,
    seed: SeedOption = 7,
    master: MasterOption = "",
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Compare the results of bundled pipelines with known ones.

    They run on generated records; the exit code is 1 if a result differs."""
    chosen = client_properties(properties)
    wrong = [
        name for name in names or _shipped_names() if not check_one(name, records, seed, master, bootstrap, chosen)
    ]
    if wrong:
        raise CommandError(f"wrong result of {', '.join(wrong)}")


def check_one(name: str, records: int, seed: int, master: str, bootstrap: str, properties: Mapping[str, str]) -> bool:
    from sskafka.pipelines.runner.run import RunSettings  # noqa: PLC0415  not for --help
    from sskafka.pipelines.shipped.selfcheck import CheckSettings  # noqa: PLC0415  see above
    from sskafka.pipelines.shipped.selfcheck import check as run_check  # noqa: PLC0415  see above

    _refuse_unknown(name)
    print_heading(f"pipeline {name}")
    began = time.monotonic()
    settings = CheckSettings(RunSettings(bootstrap, master), records, seed, properties)
    differing = run_check(name, settings, lambda text: talk(f"[{time.monotonic() - began:5.1f} s] {text}"))
    for line in differing:
        print(line)
    print(f"{name}: {'the result is wrong' if differing else 'every row is as expected'}")
    return not differing


def generate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A bundled pipeline.")],
    records: RecordsOption = 1_000,
    seed: SeedOption = 7,
    topic: TopicOption = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
) -> None:
    """Write generated records for a bundled pipeline to read."""
    from sskafka.pipelines.shipped import load_shipped  # noqa: PLC0415  not for --help
    from sskafka.pipelines.shipped.exercise import Task  # noqa: PLC0415  see above
    from sskafka.pipelines.shipped.selfcheck import make_exercise, produce, topics_of  # noqa: PLC0415  see above

    _refuse_unknown(name)
    pipeline = rewired(load_shipped(name).with_properties(client_properties(properties)), "", topic)
    topics = topics_of(pipeline)
    messages = make_exercise(name, Task(records, seed, topics)).messages
    asyncio.run(produce(bootstrap, topics, messages, pipeline.connection))
    for table, own in messages.items():
        talk(f"wrote {len(own)} records to {topics[table]}")


def rewired(pipeline: "Pipeline", own_name: str, topic: list[str] | None, to: list[str] | None = None) -> "Pipeline":
    """Return the pipeline with the topics and locations that the options name."""
    from sskafka.pipelines.shipped.wiring import WiringError, wired  # noqa: PLC0415  not for --help

    topics, locations = key_values(topic, "--topic"), key_values(to, "--to")
    try:
        return wired(pipeline, name=own_name, topics=topics, locations=locations)
    except WiringError as error:
        raise UsageError(str(error)) from None


def _shipped_names() -> list[str]:
    from sskafka.pipelines.shipped import shipped_names  # noqa: PLC0415  not for --help

    return shipped_names()


def _refuse_unknown(name: str) -> None:
    if name not in _shipped_names():
        raise CommandError(f"there is no bundled pipeline {name}", f"one of {', '.join(_shipped_names())}")
