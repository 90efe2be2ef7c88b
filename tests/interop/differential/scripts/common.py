"""Steps that many scripts share."""

from typing import Any

from differential.scripts.batches import batch
from differential.session import Session

LATEST = -1
UNKNOWN_ID = bytes(range(16))


def create_topic(
    session: Session, name: str, partitions: int = 1, replication_factor: int = 1, **configs: str
) -> bytes:
    """Create a topic without a record of it and return its id once every partition has a leader that answers."""
    session.look(
        "CreateTopics",
        topics=[
            {
                "name": name,
                "num_partitions": partitions,
                "replication_factor": replication_factor,
                "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
            }
        ],
    )
    described = session.wait_for(
        lambda answer: (
            len(answer.topics[0].partitions) == partitions
            and all(
                one.leader_id >= 0 and len(one.isr_nodes) == replication_factor for one in answer.topics[0].partitions
            )
        ),
        "Metadata",
        topics=[{"name": name}],
        allow_auto_topic_creation=False,
    )
    listed = [{"partition_index": number, "timestamp": LATEST} for number in range(partitions)]
    session.wait_for(
        lambda answer: all(one.error_code == 0 for one in answer.topics[0].partitions),
        "ListOffsets",
        replica_id=-1,
        timeout_ms=1000,
        topics=[{"name": name, "partitions": listed}],
    )
    topic_id: bytes = described.topics[0].topic_id
    return topic_id


def produce_fields(
    name: str, topic_id: bytes, data: bytes | None, *, partition: int = 0, acks: int = -1, **more: Any
) -> dict[str, Any]:
    topic = {"name": name, "topic_id": topic_id, "partition_data": [{"index": partition, "records": data}]}
    return {"acks": acks, "timeout_ms": 10_000, "topic_data": [topic], **more}


def fill(session: Session, name: str, topic_id: bytes, *values: str, partition: int = 0, **options: Any) -> None:
    """Produce a batch without a record of it, as soon as the leader knows that it leads."""
    fields = produce_fields(name, topic_id, batch(*values, **options), partition=partition)
    answer = session.wait_for(lambda one: one.responses[0].partition_responses[0].error_code == 0, "Produce", **fields)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


def caught_up(session: Session) -> None:
    """Wait until the broker has applied what the metadata log has now; ApiVersions tells the offset it has reached."""
    partitions = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    quorum = session.look("DescribeQuorum", topics=partitions).topics[0].partitions[0]
    session.wait_for(
        lambda answer: answer.finalized_features_epoch >= quorum.high_watermark - 1,
        "ApiVersions",
        client_software_name="differential",
        client_software_version="1",
    )
