"""Print all topics."""

import sys

from brokers import ArgumentParser, print_answer


def main() -> int:
    arguments = ArgumentParser("List all topics.").parse_args()
    return print_answer(arguments.brokers, "GET", "/admin/v1/topics")


if __name__ == "__main__":
    sys.exit(main())
