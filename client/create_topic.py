"""Creates a topic and prints it."""

import sys

from brokers import ArgumentParser, Cluster, RequestFailedError, print_json


def main() -> int:
    parser = ArgumentParser("Create a topic.")
    parser.add_argument("topic_name", help="name of the topic")
    parser.add_argument(
        "-p", dest="partitions", type=int, default=3, help="number of partitions (default: %(default)s)"
    )
    parser.add_argument("-r", dest="replicas", type=int, help="accepted and not used: every broker has a replica")
    arguments = parser.parse_args()
    body = {"topic_name": arguments.topic_name, "partition_count": arguments.partitions}
    try:
        print_json(Cluster(arguments.brokers).request("POST", "/admin/v1/topics", body))
    except RequestFailedError as error:
        print_json(error.answer)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
