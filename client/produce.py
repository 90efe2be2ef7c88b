"""Read keys and payloads and publish them, one by one, until an empty line is entered."""

import sys

from brokers import ArgumentParser, Cluster, RequestFailedError, print_json
from partitioner import partition_number

INTERRUPTED = 130


class Producer:
    def __init__(self, cluster: Cluster, topic: str, acks: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._acks = acks
        self._partition_count = 0

    def send(self, key: str, payload: str) -> None:
        """Return when the record is acknowledged; with acks=all this may take until a broker is back."""
        body = {
            "topic_partition": f"{self._topic}-{self._partition_of(key)}",
            "key": key,
            "payload": payload,
            "acks": self._acks,
        }
        if self._acks == "all":
            self._cluster.request("POST", "/data/v1/produce", body, timeout_s=None)
        else:
            self._cluster.request("POST", "/data/v1/produce", body)

    def _partition_of(self, key: str) -> int:
        self._partition_count = self._partition_count or self._count_partitions()
        return partition_number(key, self._partition_count)

    def _count_partitions(self) -> int:
        """Return the number of partitions; 1 for an unknown topic, whose error the brokers report."""
        topics = self._cluster.request("GET", "/admin/v1/topics", changes=False)["topics"]
        return next((len(topic["partitions"]) for topic in topics if topic["topic_name"] == self._topic), 1)


def read_line(prompt: str) -> str:
    """Return an empty line at the end of the input."""
    try:
        return input(prompt)
    except EOFError:
        return ""


def produce(producer: Producer) -> None:
    while (key := read_line("Key: ")) and (payload := read_line("Payload: ")):
        producer.send(key, payload)
        print("> OK\n", flush=True)


def main() -> int:
    parser = ArgumentParser("Publish records to a topic.")
    parser.add_argument("topic", help="name of the topic")
    parser.add_argument(
        "-a",
        dest="acks",
        choices=["all", "1", "0"],
        default="all",
        help="who must store a record: all brokers, the leader (1), or none (0) (default: %(default)s)",
    )
    arguments = parser.parse_args()
    try:
        produce(Producer(Cluster(arguments.brokers), arguments.topic, arguments.acks))
    except RequestFailedError as error:
        print_json(error.answer, sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
