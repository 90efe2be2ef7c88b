"""Prints all topics."""

import sys

from brokers import ArgumentParser, Cluster, RequestFailedError, print_json


def main() -> int:
    arguments = ArgumentParser("List all topics.").parse_args()
    try:
        print_json(Cluster(arguments.brokers).request("GET", "/admin/v1/topics", changes=False))
    except RequestFailedError as error:
        print_json(error.answer)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
