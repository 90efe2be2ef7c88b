"""Create a topic and print it."""

import sys

from brokers import ArgumentParser, print_answer


def main() -> int:
    parser = ArgumentParser("Create a topic.")
    parser.add_argument("topic_name", help="name of the topic")
    parser.add_argument(
        "-p", dest="partitions", type=int, default=3, help="number of partitions (default: %(default)s)"
    )
    parser.add_argument("-r", dest="replicas", type=int, help="accepted but ignored: every broker has a replica")
    arguments = parser.parse_args()
    body = {"topic_name": arguments.topic_name, "partition_count": arguments.partitions}
    return print_answer(arguments.brokers, "POST", "/admin/v1/topics", body)


if __name__ == "__main__":
    sys.exit(main())
