"""Produce a small record every few milliseconds and note the waits: `polite_client.py HOST:PORT TOPIC`.

For each line on stdin it prints the waits so far, in milliseconds, as a JSON list. A request that waits for long stands
for all those that a client with a fixed schedule would have sent meanwhile, so their waits are added.
"""

import json
import select
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import wire_connection
from wire_connection import Connection, values_batch

INTERVAL_S = 0.01


def main(bootstrap: str, topic: str) -> None:
    wire_connection.TIMEOUT_S = 120
    batch = bytes(values_batch(b"polite" * 10))
    waits_ms: list[float] = []
    with Connection(bootstrap) as connection:
        while True:
            began_s = time.perf_counter()
            assert connection.produce(topic, batch, acks=1).error_code == 0
            wait_s = time.perf_counter() - began_s
            waits_ms += as_scheduled(wait_s)
            if select.select([sys.stdin], [], [], max(0.0, INTERVAL_S - wait_s))[0]:
                if not sys.stdin.readline():
                    return
                print(json.dumps(waits_ms), flush=True)  # noqa: T201
                waits_ms = []


def as_scheduled(wait_s: float) -> list[float]:
    waits_ms = []
    while True:
        waits_ms.append(round(wait_s * 1000, 2))
        wait_s -= INTERVAL_S
        if wait_s <= 0:
            return waits_ms


if __name__ == "__main__":
    main(*sys.argv[1:])
