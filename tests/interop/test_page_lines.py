"""The lines of README and docs that call Kafka's tools and kcat work as printed, on Apache Kafka and on SSKafka."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.apache_kafka import KafkaLibs
from benchmarks.brokers import BrokerKind
from page_blocks import ROOT, PageBlock, PageRun, blocks_of, commands_of
from page_lists import KAFKA_PAGES
from page_servers import Addresses
from programs import APACHE_KAFKA, SSKAFKA
from tools.commands import MAIN

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PROGRAMS = ("kafka-", "kcat ")
AFTERWARDS = """
$ kafka-acls.sh --bootstrap-server localhost:9092 --list --topic orders
...principal=User:alice, host=*, operation=READ, permissionType=ALLOW...
$ kafka-acls.sh --bootstrap-server localhost:9092 --list --group billing
...principal=User:alice, host=*, operation=READ, permissionType=ALLOW...
$ kafka-configs.sh --bootstrap-server localhost:9092 --describe --entity-type users --entity-name alice
...producer_byte_rate=...
$ kafka-configs.sh --bootstrap-server localhost:9092 --describe --entity-type clients --entity-default
...request_percentage=...
"""


def lines_of(block: PageBlock) -> list[str]:
    return [command.line for command in commands_of(block.text) if command.line.startswith(PROGRAMS)]


def scripts_in(directory: Path, libs: KafkaLibs) -> Path:
    """Make the scripts of Apache Kafka's directory `bin`."""
    directory.mkdir()
    for name, main in MAIN.items():
        script = directory / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(libs.java(main))} "$@"\n')
        script.chmod(0o755)
    return directory


@pytest.mark.parametrize("kind", [APACHE_KAFKA, SSKAFKA])
@pytest.mark.usefixtures("kcat_program")
def test_the_lines_of_the_pages_run(
    kind: str,
    kafka_libs: KafkaLibs,
    broker_kind: Callable[[str], BrokerKind],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{scripts_in(tmp_path / 'bin', kafka_libs)}:{os.environ['PATH']}")
    with (
        broker_kind(kind).running(tmp_path / "broker", SETTINGS) as broker,
        PageRun(tmp_path, at=Addresses(broker.bootstrap, "", ""), left_out=()) as run,
    ):
        for page in KAFKA_PAGES:
            lines = [line for block in blocks_of(ROOT / page) for line in lines_of(block)]
            assert lines, page
            run.run_console("".join(f"$ {line}\n" for line in lines))
        run.run_console(AFTERWARDS)
