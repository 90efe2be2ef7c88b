"""A read-only console shows everything and offers no change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_process import BrokerProcess
from browser import Browser
from wire_connection import Connection

CHANGES = {"Create a topic", "Add partitions", "Delete", "Change"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "broker", {"http.listener": "127.0.0.1:0", "console.read.only": "true"})
    try:
        yield broker.start()
    finally:
        broker.close()


def test_no_page_of_topics_has_a_button_for_changes(broker: BrokerProcess, browser: Browser) -> None:
    with Connection(broker.bootstrap) as connection:
        connection.create_topic("looked-at")
    url = f"http://{broker.http}"
    for page, shown in (
        ("topics", "looked-at"),
        ("topics/looked-at", "Partition map"),
        ("topics/looked-at?tab=settings", "retention.ms"),
    ):
        browser.open(url, page)
        browser.wait_for_text("read only", selector="header.top")
        browser.wait_for_text(shown)
        assert not CHANGES & set(browser.texts("main button"))
