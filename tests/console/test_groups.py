"""Groups and transactions in the console: a group that rebalances while it is shown, resets and aborts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from browser import Browser
from console_clients import TIMEOUT_S, create_topic, new_consumer, new_producer
from console_cluster import ConsoleCluster
from selenium.webdriver.support.ui import Select


def fill(cluster: ConsoleCluster, topic: str, partitions: int, count: int) -> None:
    create_topic(cluster, topic, partitions)
    producer = new_producer(cluster)
    for number in range(count):
        producer.produce(topic, json.dumps({"n": number}), partition=number % partitions)
    assert producer.flush(TIMEOUT_S) == 0


@contextmanager
def member(cluster: ConsoleCluster, group: str, topic: str, client_id: str) -> Iterator[None]:
    """A consumer that reads and commits in the background."""
    consumer = new_consumer(
        cluster, group_id=group, client_id=client_id, auto_offset_reset="earliest", enable_auto_commit=True
    )
    consumer.subscribe([topic])
    has_joined, is_stopping = Event(), Event()

    def read() -> None:
        while not is_stopping.is_set():
            consumer.poll(0.1)
            if consumer.assignment():
                has_joined.set()
        consumer.close()

    thread = Thread(target=read)
    thread.start()
    try:
        assert has_joined.wait(60), "the member is assigned partitions"
        yield
    finally:
        is_stopping.set()
        thread.join()


def test_a_group_that_rebalances_while_it_is_shown(browser: Browser, cluster: ConsoleCluster) -> None:
    fill(cluster, "shared", 6, 60)
    with member(cluster, "team", "shared", "worker-1"):
        browser.open(cluster.url(), "groups/team?tab=assignment")
        browser.wait_for_text("worker-1", selector=".member")
        browser.wait_until(lambda: len(browser.find(".cell.series-0")) == 6, "one member has all partitions")
        with member(cluster, "team", "shared", "worker-2"):
            browser.wait_for_text("worker-2", selector=".member")
            browser.wait_until(lambda: len(browser.find(".cell.series-1")) == 3, "the members share the partitions")
            assert browser.accessibility_findings() == []
            browser.click("Lag")
            browser.wait_for_text("shared-5", selector="td")
            browser.wait_for(".chart canvas")
            browser.wait_for_text("Stable", selector=".figure")
            browser.click("Rebalances")
            browser.wait_for_text("rebalance-completed", selector="td")
            browser.wait_until(lambda: len(browser.find("svg.timeline .life")) == 2, "a line for each member")
            assert len(browser.find("svg.timeline .rebalance")) >= 2
            assert browser.accessibility_findings() == []
        browser.wait_for_text("left", selector="td")


def test_offsets_are_reset_after_a_dry_run(browser: Browser, cluster: ConsoleCluster) -> None:
    fill(cluster, "reread", 1, 10)
    with member(cluster, "rereaders", "reread", "reader"):
        browser.open(cluster.url(), "groups/rereaders?tab=offsets")
        browser.wait_for_text("Offsets can be reset when they are stopped.")
        with browser.expecting("409"):
            browser.click("Dry run")
            browser.wait_for_text("has 1 members", selector=".failure")
    browser.wait_until(lambda: "Offsets can be reset when" not in browser.text, "the member has left")
    browser.click("Dry run")
    browser.wait_for_text("reads 10 records again", selector="td")
    assert browser.accessibility_findings() == []
    browser.click("Execute")
    browser.fill("Type rereaders", "rereaders")
    browser.click("Reset offsets", "dialog button")
    browser.wait_for_text("The offsets of 1 partition are reset.", selector=".toast")
    browser.click("Lag")
    browser.wait_until(lambda: "10 records" in " ".join(browser.texts(".figure")), "the group has to read all again")
    browser.click("Delete")
    browser.fill("Type rereaders", "rereaders")
    browser.click("Delete", "dialog footer button")
    browser.wait_for_text("Group rereaders is deleted.", selector=".toast")
    assert browser.driver.current_url.endswith("#/groups")


def test_an_open_transaction_is_aborted(browser: Browser, cluster: ConsoleCluster) -> None:
    create_topic(cluster, "sales")
    producer = new_producer(cluster, transactional_id="shop/1")
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("sales", b"open")
    assert producer.flush(TIMEOUT_S) == 0
    browser.open(cluster.url(), "transactions")
    browser.wait_for_text("shop/1", selector="td")
    browser.wait_for_text("Ongoing", selector="td")
    browser.click("Producers of a partition")
    browser.wait_for_text("sales", selector="option")
    Select(browser.field("Topic")).select_by_visible_text("sales")
    browser.wait_for_text("offset 0", selector="td")
    assert browser.accessibility_findings() == []
    browser.click("Transactional ids")
    browser.click("Abort")
    browser.fill("Type shop/1", "shop/1")
    browser.click("Abort", "dialog footer button")
    browser.wait_for_text("The transaction of shop/1 is aborted", selector=".toast")
    browser.click("Open only")
    browser.wait_for_text("No transaction is open.")
