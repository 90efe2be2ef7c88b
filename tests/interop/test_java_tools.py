"""Apache Kafka's own command-line tools, and so the Java client: topics, records, offsets, settings."""

import json
import re
from pathlib import Path

from benchmarks.brokers import Broker
from programs import JavaTools, Kcat, wait_for_next_millisecond

TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
COMPATIBILITY = "org.apache.kafka.tools.ClientCompatibilityTest"

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARSED = tuple(
    word
    for setting in ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    for word in ("--reader-property", setting)
)
PRINTED = tuple(
    word
    for setting in ("print.offset=true", "print.headers=true", "print.key=true", "null.literal=NULL")
    for word in ("--formatter-property", setting)
)


def at(broker: Broker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap


def produce(java: JavaTools, broker: Broker, topic: str, lines: list[str], *options: str) -> None:
    java.run(PRODUCER, *at(broker), "--topic", topic, *options, stdin="".join(f"{line}\n" for line in lines))


def consume(
    java: JavaTools, broker: Broker, topic: str, count: int, *options: str, offset: str = "earliest"
) -> list[str]:
    where = ("--topic", topic, "--partition", "0", "--offset", offset, "--max-messages", str(count))
    return java.run(CONSUMER, *at(broker), *where, "--timeout-ms", "20000", *options).splitlines()


def offsets(java: JavaTools, broker: Broker, topic: str, moment: str) -> dict[int, int]:
    lines = java.run(OFFSETS, *at(broker), "--topic", topic, "--time", moment).split()
    return {int(partition): int(offset) for _, partition, offset in (line.rsplit(":", 2) for line in lines)}


def test_topics_are_created_described_altered_and_deleted(java: JavaTools, broker: Broker, topic: str) -> None:
    create = ("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=3600000")
    assert f"Created topic {topic}." in java.run(TOPICS, *at(broker), *create)
    assert "TopicExistsException" in java.fail(TOPICS, *at(broker), *create)
    java.run(TOPICS, *at(broker), "--alter", "--topic", topic, "--partitions", "3")
    described = java.run(TOPICS, *at(broker), "--describe", "--topic", topic)
    assert re.search(r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention\.ms=3600000", described)
    assert re.findall(r"Partition: (\d)\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described) == ["0", "1", "2"]
    java.run(TOPICS, *at(broker), "--delete", "--topic", topic)
    assert topic not in java.run(TOPICS, *at(broker), "--list").split()


def test_every_codec_with_keys_headers_and_nulls(java: JavaTools, broker: Broker, topic: str, kcat: Kcat) -> None:
    """The Java client frames snappy as Xerial does; that librdkafka reads it too proves that the bytes are kept."""
    for codec in CODECS:
        lines = [f"codec:{codec},empty:\tkey-{codec}\t{codec} " + "x" * 300, f"codec:{codec}\tkey-{codec}\tNULL"]
        produce(java, broker, topic, lines, "--compression-codec", codec, *PARSED)
    read = [line.split("\t") for line in consume(java, broker, topic, 2 * len(CODECS), *PRINTED)]
    assert [fields[0] for fields in read] == [f"Offset:{offset}" for offset in range(2 * len(CODECS))]
    assert [fields[1] for fields in read[::2]] == [f"codec:{codec},empty:" for codec in CODECS]
    assert [fields[2:] for fields in read[::2]] == [[f"key-{codec}", f"{codec} " + "x" * 300] for codec in CODECS]
    assert [fields[2:] for fields in read[1::2]] == [[f"key-{codec}", "NULL"] for codec in CODECS]
    by_kcat = kcat.consume(topic)
    assert [(one.key, one.value) for one in by_kcat[::2]] == [(fields[2], fields[3]) for fields in read[::2]]
    assert [one.value for one in by_kcat[1::2]] == [None] * len(CODECS)
    assert [one.headers[0] for one in by_kcat[::2]] == [("codec", codec) for codec in CODECS]


def test_what_kcat_compresses_the_java_consumer_reads(java: JavaTools, broker: Broker, topic: str, kcat: Kcat) -> None:
    for codec in CODECS:
        kcat.produce(topic, [f"{codec} {number} " + "y" * 100 for number in range(20)], "-z", codec)
    assert consume(java, broker, topic, 5, offset="78") == [
        *(f"lz4 {number} " + "y" * 100 for number in (18, 19)),
        *(f"zstd {number} " + "y" * 100 for number in (0, 1, 2)),
    ]


def test_offsets_by_position_and_time(java: JavaTools, broker: Broker, topic: str, kcat: Kcat) -> None:
    java.run(TOPICS, *at(broker), "--create", "--topic", topic, "--partitions", "2")
    kcat.produce(topic, ["a", "b", "c"], partition=1)
    wait_for_next_millisecond()
    kcat.produce(topic, ["d"], partition=1)
    first, *_, last = kcat.consume(topic, partition=1)
    assert offsets(java, broker, topic, "earliest") == {0: 0, 1: 0}
    assert offsets(java, broker, topic, "latest") == {0: 0, 1: 4}
    assert offsets(java, broker, topic, "max-timestamp")[1] == 3
    assert offsets(java, broker, topic, str(last.timestamp))[1] == 3
    assert offsets(java, broker, topic, str(first.timestamp - 1))[1] == 0
    assert offsets(java, broker, topic, str(last.timestamp + 1)).get(1, 4) == 4


def test_topic_settings_are_altered_and_described(java: JavaTools, broker: Broker, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    java.run(TOPICS, *at(broker), "--create", "--topic", topic)
    java.run(
        CONFIGS, *at(broker), *entity, "--alter", "--add-config", "retention.ms=1234567,cleanup.policy=[compact,delete]"
    )
    described = java.run(CONFIGS, *at(broker), *entity, "--describe")
    assert "retention.ms=1234567" in described
    assert "cleanup.policy=compact,delete" in described
    java.run(CONFIGS, *at(broker), *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms=" not in java.run(CONFIGS, *at(broker), *entity, "--describe")
    assert "InvalidConfigurationException" in java.fail(
        CONFIGS, *at(broker), *entity, "--alter", "--add-config", "no.such=1"
    )


def test_broker_settings_are_described(java: JavaTools, broker: Broker) -> None:
    described = java.run(CONFIGS, *at(broker), "--entity-type", "brokers", "--entity-name", "1", "--describe", "--all")
    assert "node.id=1 sensitive=false" in described
    assert "log.segment.bytes=1073741824 sensitive=false" in described
    assert "DEFAULT_CONFIG:log.segment.bytes=1073741824" in described


def test_records_are_deleted_up_to_an_offset(
    java: JavaTools, broker: Broker, topic: str, kcat: Kcat, tmp_path: Path
) -> None:
    kcat.produce(topic, [str(number) for number in range(10)])
    wanted = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}
    (tmp_path / "offsets.json").write_text(json.dumps(wanted))
    answer = java.run(DELETE_RECORDS, *at(broker), "--offset-json-file", str(tmp_path / "offsets.json"))
    assert f"partition: {topic}-0\tlow_watermark: 4" in answer
    assert [one.offset for one in kcat.consume(topic)] == [4, 5, 6, 7, 8, 9]


def test_log_directories_and_producers(java: JavaTools, broker: Broker, topic: str) -> None:
    produce(java, broker, topic, ["one", "two"])
    answer = java.run(LOG_DIRS, *at(broker), "--describe", "--topic-list", topic).splitlines()[-1]
    [directory] = json.loads(answer)["brokers"][0]["logDirs"]
    assert directory["logDir"] == str(broker.data)
    assert [one["partition"] for one in directory["partitions"]] == [f"{topic}-0"]
    assert directory["partitions"][0]["size"] > 0
    producers = java.run(TRANSACTIONS, *at(broker), "describe-producers", "--topic", topic, "--partition", "0")
    heading, row = (line.split() for line in producers.splitlines()[-2:])
    assert dict(zip(heading, row, strict=False))["LastSequence"] == "1"


def test_versions_features_and_cluster_id(java: JavaTools, broker: Broker) -> None:
    versions = java.run(API_VERSIONS, *at(broker))
    ranges = (
        r"Produce\(0\): 0 to 1\d",
        r"Fetch\(1\): 4 to 18",
        r"Metadata\(3\): 0 to 13",
        r"ApiVersions\(18\): 0 to 4",
    )
    for served in ranges:
        assert re.search(served, versions), versions
    assert re.search(r"Feature: metadata\.version.*FinalizedVersionLevel", java.run(FEATURES, *at(broker), "describe"))
    cluster_id = re.search(r"Cluster ID: (\S+)", java.run(CLUSTER, "cluster-id", *at(broker)))
    assert broker.data is not None
    assert cluster_id is not None
    assert f"cluster.id={cluster_id[1]}" in (broker.data / "meta.properties").read_text()


def test_clients_own_compatibility_check(java: JavaTools, broker: Broker, topic: str) -> None:
    """Kafka's test of its Java client: produce, offsets for times, admin calls, consume by assignment."""
    java.run(TOPICS, *at(broker), "--create", "--topic", topic)
    has_acls = "DescribeAcls(29): UNSUPPORTED" not in java.run(API_VERSIONS, *at(broker))
    expected = {
        "--offsets-for-times-supported": "true",
        "--cluster-id-supported": "true",
        "--expect-record-too-large-exception": "false",
        "--num-cluster-nodes": "1",
        "--create-topics-supported": "true",
        "--describe-acls-supported": str(has_acls).lower(),
        "--describe-configs-supported": "true",
        "--idempotent-producer-supported": "true",
    }
    words = [word for pair in expected.items() for word in pair]
    assert "SUCCESS" in java.run(COMPATIBILITY, *at(broker), "--topic", topic, *words)
