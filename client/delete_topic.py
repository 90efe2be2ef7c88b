"""Deletes a topic; prints nothing, or what went wrong."""

import sys
from urllib.parse import quote

from brokers import ArgumentParser, Cluster, RequestFailedError, print_json


def main() -> int:
    parser = ArgumentParser("Delete a topic.")
    parser.add_argument("topic_name", help="name of the topic")
    arguments = parser.parse_args()
    try:
        Cluster(arguments.brokers).request("DELETE", f"/admin/v1/topics/{quote(arguments.topic_name, safe='')}")
    except RequestFailedError as error:
        print_json(error.answer)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
