"""The examples of README and docs work as printed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from broker_process import BrokerProcess
from page_blocks import ROOT, Addresses, PageRun, StartBroker, blocks_of

PAGES = ("README.md", "docs/index.md", "docs/http.md", "docs/metrics.md", "docs/testing.md")
SERVERS = {"http.listener": "127.0.0.1:0", "offsets.topic.num.partitions": 1}


@pytest.fixture
def start_fresh(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts a broker in the place of the one before."""
    with ExitStack() as cleanup:
        started: list[BrokerProcess] = []

        def start(options: list[str]) -> Addresses:
            for broker in started:
                broker.close()
            broker = BrokerProcess(tmp_path / f"broker-{len(started)}", SERVERS, options=options)
            cleanup.callback(broker.close)
            started.append(broker)
            broker.start()
            return Addresses(broker.bootstrap, broker.http)

        yield start


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, start_fresh: StartBroker) -> None:
    assert PageRun(tmp_path, start_fresh).run(ROOT / page) > 0


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_has_a_reason(page: str) -> None:
    assert all(len(block.mark) > 20 for block in blocks_of(ROOT / page) if block.mark.startswith("not run"))


def test_a_broken_example_is_found(tmp_path: Path, start_fresh: StartBroker) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n")
    with pytest.raises(AssertionError, match="assert 1 == 2"):
        PageRun(tmp_path, start_fresh).run(page)
