"""Tabs of the metadata page that brokers of the challenge and of the lab have."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker_process import BrokerProcess
from browser import Browser
from clients import Message, confluent_producer, confluent_send
from wire_connection import Connection

from sskafka.challenge.log_directory import PreparedTopic, prepare, prepared_batches
from sskafka.model.ids import uuid_text

HTTP = {"http.listener": "127.0.0.1:0"}


@contextmanager
def shown(browser: Browser, broker: BrokerProcess) -> Iterator[BrokerProcess]:
    """Run a broker. The browser leaves its pages before it stops, because they complain about lost connections."""
    try:
        yield broker.start()
        browser.driver.get("about:blank")
    finally:
        broker.close()


def test_the_directory_of_the_challenge(browser: Browser, tmp_path: Path) -> None:
    topic_id = bytes.fromhex("00000000000040008000000000000042")
    batches = prepared_batches(b"message %d" % offset for offset in range(3))
    prepare(tmp_path / "data", [PreparedTopic("foo", topic_id, (batches, ()))])
    with shown(browser, BrokerProcess(tmp_path, HTTP)) as broker:
        browser.open(f"http://{broker.http}", "metadata")
        browser.click("Challenge")
        browser.wait_for_text("foo-0", selector="td")
        browser.wait_for_text("foo-1", selector="td")
        browser.wait_for_text(uuid_text(topic_id), selector="td")
        browser.wait_for_text(str(tmp_path / "data"), selector=".note")
        assert browser.accessibility_findings() == []
        browser.click("foo-0")
        browser.wait_for_text("active", selector=".badge")


def test_the_journal_of_the_lab(browser: Browser, tmp_path: Path) -> None:
    settings = {**HTTP, "lab.api": "true", "metadata.log.dir": tmp_path / "metadata", "log.dir.partition.base": 1}
    with shown(browser, BrokerProcess(tmp_path, settings)) as broker, Connection(broker.bootstrap) as connection:
        browser.open(f"http://{broker.http}", "metadata?tab=lab")
        browser.wait_for_text("No topic was created yet.")
        connection.create_topic("letters")
        browser.wait_for_text("letters", selector="td")
        browser.wait_for_text("log.dir.partition.base=1", selector="code")
        assert browser.accessibility_findings() == []


def test_other_brokers_have_neither(browser: Browser, tmp_path: Path) -> None:
    with shown(browser, BrokerProcess(tmp_path, HTTP)) as broker:
        confluent_send(confluent_producer(broker.bootstrap), "plain", [Message(b"x")])
        browser.open(f"http://{broker.http}", "metadata?tab=challenge")
        browser.wait_for_text("Metadata log")
        assert browser.texts("[role=tab]") == ["Tree", "Metadata log"]
