"""`--watch` shows a screen again until Ctrl+C."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

import pytest

import sskafka


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with sskafka.Broker() as broker:
        broker.produce("orders", "3 apples")
        with sskafka.Consumer(broker.bootstrap_servers, group_id="billing") as consumer:
            consumer.subscribe("orders")
            assert consumer.poll(1, timeout_ms=10_000)
            consumer.commit()
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("command", "header"),
    [
        ("cluster status", "BROKER "),
        ("cluster reassignments", "TOPIC "),
        ("broker list", "BROKER "),
        ("topic describe orders", "SUMMARY"),
        ("group describe billing", "GROUP "),
        ("group readers", "CLIENT-ID "),
        ("metadata quorum", "LEADER "),
    ],
)
def test_a_screen_is_repeated_until_it_is_interrupted(bootstrap: str, command: str, header: str) -> None:
    words = [sys.executable, "-m", "sskafka", *command.split(), "--watch", "0.1", "-b", bootstrap]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            screens = (line for line in process.stdout if line.startswith(header))
            assert len(list(islice(screens, 3))) == 3
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
