"""The challenge with both brokers: Apache Kafka passes, and each opens a prepared directory after the other."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from benchmarks.apache_kafka import KafkaLibs
from benchmarks.brokers import free_ports
from waiting import wait_until

from sskafka.challenge.log_directory import prepare, produced_batch
from sskafka.challenge.program import Program, Repository
from sskafka.challenge.requests import describe_topic_partitions, fetch, produce
from sskafka.challenge.stage import StageContext
from sskafka.challenge.tester import ChallengeSettings, ChallengeTester, all_cases, server_properties, wait_for_leaders
from sskafka.challenge.topics import ChallengeTopics
from sskafka.model.ids import Uuid
from sskafka.records.batch import assign_offset

START_SECONDS_MAX = 60.0


@pytest.fixture
def apache_kafka(tmp_path: Path, kafka_libs: KafkaLibs) -> Repository:
    command = " ".join(f"'{word}'" for word in kafka_libs.java("kafka.Kafka", options=("-Xmx512M",)))
    return repository(tmp_path / "apache-kafka", command)


@pytest.fixture
def sskafka(tmp_path: Path) -> Repository:
    return repository(tmp_path / "sskafka", f"'{sys.executable}' -m sskafka start")


def repository(directory: Path, command: str) -> Repository:
    directory.mkdir()
    program = directory / "your_program.sh"
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    (directory / "codecrafters.yml").write_text("debug: false\n")
    return Repository.at(directory)


@pytest.fixture
def settings(tmp_path: Path) -> ChallengeSettings:
    port, controller_port = free_ports(2)
    return ChallengeSettings(
        tmp_path / "server.properties",
        tmp_path / "logs",
        port,
        controller_port,
        seed=11,
        start_seconds_max=START_SECONDS_MAX,
        shared=True,
    )


def test_apache_kafka_passes(apache_kafka: Repository, settings: ChallengeSettings) -> None:
    verdicts = list(ChallengeTester(apache_kafka, settings).run(all_cases()))
    assert [(one.case.stage.slug, one.findings, one.output) for one in verdicts if not one.passed] == []
    assert len(verdicts) == len(all_cases())


@contextmanager
def running(repository: Repository, settings: ChallengeSettings, topics: ChallengeTopics) -> Iterator[StageContext]:
    """The program on the directory as it is now, ended by SIGTERM."""
    with closing(Program(repository, settings.properties, settings.port)) as program:
        program.start(START_SECONDS_MAX)
        wait_for_leaders(settings.port, topics, START_SECONDS_MAX, settings.answer_seconds_max)
        with StageContext(topics, settings.log_directory, program, lambda _line: None, START_SECONDS_MAX) as context:
            yield context
        program.stop()


def test_each_opens_what_the_other_has_left(
    apache_kafka: Repository, sskafka: Repository, settings: ChallengeSettings
) -> None:
    """A prepared directory is served in turns; everything prepared and produced stays there byte for byte."""
    topics = ChallengeTopics(settings.seed)
    prepare(settings.log_directory, topics.all)
    settings.properties.write_text(server_properties(settings))
    logs = {topic.topic_id: b"".join(topic.batches[0]) for topic in topics.all}
    ends = {topic.topic_id: len(topic.batches[0]) for topic in topics.all}
    for turn, program in enumerate((sskafka, apache_kafka, sskafka, apache_kafka)):
        with running(program, settings, topics) as context:
            for topic in (topics.single, topics.many, topics.written):
                batch = produced_batch([f"turn {turn}".encode()])
                at = "responses[0].partition_responses[0]"
                expected = {f"{at}.error_code": 0, f"{at}.base_offset": ends[topic.topic_id]}
                context.ask(produce({topic.name: {0: batch}}), expected)
                logs[topic.topic_id] += with_offset(batch, ends[topic.topic_id])
                ends[topic.topic_id] += 1
                assert fetched(context, topic.topic_id, ends[topic.topic_id]) == without_epochs(logs[topic.topic_id])
            described = context.ask(describe_topic_partitions([topic.name for topic in topics.all]))
            assert described["topics.length"] == len(topics.all)
    shutil.rmtree(settings.log_directory)


def fetched(context: StageContext, topic_id: Uuid, end_offset: int) -> bytes:
    """The log up to its end. A produce with acks=1 is answered before its record is committed."""

    def committed() -> bytes | None:
        found = context.ask(fetch({topic_id: [0]}))
        is_whole = found["responses[0].partitions[0].high_watermark"] == end_offset
        return without_epochs(found["responses[0].partitions[0].records"]) if is_whole else None

    log = wait_until(committed, f"the record before offset {end_offset} is committed")
    assert log is not None
    return log


def with_offset(batch: bytes, offset: int) -> bytes:
    patched = bytearray(batch)
    assign_offset(patched, 0, offset, 0)
    return bytes(patched)


def without_epochs(log: object) -> bytes:
    """Leaders write their epoch, which grows with each of them."""
    assert isinstance(log, bytes)
    data, position = bytearray(log), 0
    while position < len(data):
        data[position + 12 : position + 16] = bytes(4)
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return bytes(data)
