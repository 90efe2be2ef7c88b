"""Delete a topic. Prints nothing on success, otherwise the error."""

import sys
from urllib.parse import quote

from brokers import ArgumentParser, print_answer


def main() -> int:
    parser = ArgumentParser("Delete a topic.")
    parser.add_argument("topic_name", help="name of the topic")
    arguments = parser.parse_args()
    return print_answer(arguments.brokers, "DELETE", f"/admin/v1/topics/{quote(arguments.topic_name, safe='')}")


if __name__ == "__main__":
    sys.exit(main())
