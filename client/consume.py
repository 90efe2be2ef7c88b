"""Print the records of a partition as they arrive, until Ctrl+C."""

import os
import signal
import sys

signal.signal(signal.SIGINT, lambda *_: sys.exit(0))  # before the slow imports below

import time  # noqa: E402

from brokers import ArgumentParser, Cluster, RequestFailedError, print_json  # noqa: E402

WAIT_MS = 5000  # how long a broker may wait for records; a broker that does not know the field answers at once
PAUSE_S = 0.2


def consume(cluster: Cluster, topic_partition: str, max_batch_size: int) -> None:
    last_offset = -1
    while True:
        asked_at = time.monotonic()
        body = {
            "topic_partition": topic_partition,
            "last_offset": last_offset,
            "max_batch_size": max_batch_size,
            "max_wait_ms": WAIT_MS,
        }
        answer = cluster.request("POST", "/data/v1/consume", body, changes=False)
        for record in answer["records"]:
            print(f"[{record['offset']}] [{record.get('key') or ''}] {record['payload']}", flush=True)
        if answer["records"]:
            last_offset = answer["last_offset"]
        elif time.monotonic() < asked_at + PAUSE_S:
            time.sleep(PAUSE_S)


def main() -> int:
    parser = ArgumentParser("Print the records of a partition until Ctrl+C.")
    parser.add_argument("topic_partition", help="topic name, a dash, and the partition number")
    parser.add_argument(
        "-s", dest="batch_size", type=int, default=100, help="maximum records per request (default: %(default)s)"
    )
    arguments = parser.parse_args()
    try:
        consume(Cluster(arguments.brokers), arguments.topic_partition, arguments.batch_size)
    except RequestFailedError as error:
        print_json(error.answer, sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the output has exited; discard what is still buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
