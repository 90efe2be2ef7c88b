"""Metadata and log files in the browser."""

from browser import Browser
from clients import Message, confluent_producer, confluent_send
from console_cluster import ConsoleCluster


def test_the_tree_and_the_log(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic("in-the-tree", partitions=1)
    browser.open(cluster.url(), "metadata")
    browser.click("brokers")
    browser.click("topics", ".tree .tree button")
    browser.click("in-the-tree")
    browser.wait_for_text("topic_id", selector=".tree pre")
    browser.click("Metadata log")
    browser.wait_for_text("TOPIC_RECORD", selector=".badge")
    browser.wait_for(".metadata-log .row-toggle").click()
    browser.wait_for(".metadata-log pre")
    assert browser.accessibility_findings() == []


def test_the_batches_of_a_segment(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic("on-disk", partitions=1)
    producer = confluent_producer(cluster.bootstrap, compression_type="gzip")
    confluent_send(producer, "on-disk", [Message(b"x" * 500)] * 3)
    browser.open(cluster.url(), "log/on-disk/0")
    browser.wait_for_text("active", selector=".badge")
    browser.wait_for(".row-link").click()
    browser.wait_for_text("gzip", selector="td")
    assert browser.accessibility_findings() == []
    browser.click("Index entries")
    browser.wait_for_text("Offset to position")


def test_the_segments_of_every_broker(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic("on-two-disks", partitions=1, replicas=2)
    state = cluster.partitions("on-two-disks")[0]
    (elsewhere,) = set(cluster.node_ids) - set(state.replicas)
    producer = confluent_producer(cluster.bootstrap, compression_type="gzip")
    confluent_send(producer, "on-two-disks", [Message(b"x" * 500)] * 3)
    for node_id in state.replicas:
        browser.open(cluster.url(elsewhere), f"log/on-two-disks/0?broker={node_id}")
        browser.wait_for_text(f"Broker {node_id}, {cluster.home(node_id)}", selector=".note")
    browser.open(cluster.url(elsewhere), "log/on-two-disks/0")
    browser.wait_for_text(f"Broker {state.leader},", selector=".note")
    assert browser.accessibility_findings() == []
    browser.wait_for(".row-link").click()
    browser.wait_for_text("gzip", selector="td")
    browser.click(f"Segments on broker {state.leader}")
    browser.wait_for_text("active", selector=".badge")


def test_a_partition_that_nobody_has(browser: Browser, cluster: ConsoleCluster) -> None:
    with browser.expecting("404"):
        browser.open(cluster.url(), "log/absent/0")
        browser.wait_for_text("has no replica of absent-0", selector=".failure")
