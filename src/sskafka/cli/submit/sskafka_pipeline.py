"""`sskafka pipeline run` as a program for spark-submit, which runs a file instead of a command.

    spark-submit --master spark://host:7077 $(sskafka pipeline script) clicks.yaml -b broker:9092

The arguments are those of `sskafka pipeline run`. Master, memory and executors are options of spark-submit.
"""

import sys

from sskafka.cli.main import run


def main() -> None:
    sys.argv[1:] = ["pipeline", "run", *sys.argv[1:]]
    run()


if __name__ == "__main__":
    main()
