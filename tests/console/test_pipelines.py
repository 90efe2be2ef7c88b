"""Pipelines in the browser, from events as a run writes them."""

import time

from browser import Browser
from clients import Message, confluent_producer, confluent_send
from console_cluster import ConsoleCluster

from sskafka.model.pipeline_events import EVENTS_TOPIC, Event, EventType

GRAPH = {
    "sources": [{"name": "clicks", "reads": "clicks"}],
    "steps": [{"name": "result", "code": "select user, count(*) from clicks group by user"}],
    "sinks": [{"name": "counts", "kind": "topic", "reads": "result"}],
}


def write(cluster: ConsoleCluster, *events: Event) -> None:
    producer = confluent_producer(cluster.bootstrap)
    confluent_send(producer, EVENTS_TOPIC, [Message(event.to_json()) for event in events])


def progress(time_ms: int, rows: int) -> Event:
    query = {"query": "counts", "batch": 1, "rows_in": rows, "rows_out": rows, "in_per_s": rows / 10, "batch_ms": 40}
    return Event("shop", "r2", EventType.PROGRESS, time_ms, {"queries": [query]})


def test_a_running_pipeline(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic(EVENTS_TOPIC, partitions=1)
    now_ms = int(time.time() * 1000)
    write(
        cluster,
        Event("shop", "r1", EventType.STARTED, now_ms - 90_000),
        Event("shop", "r1", EventType.FAILED, now_ms - 80_000, {"error": "the <b>sink</b> is gone"}),
        Event("shop", "r2", EventType.STARTED, now_ms - 60_000, {"file": "shop.yaml", "graph": GRAPH}),
        *(progress(now_ms - 1_000 * second, 1_000 - 10 * second) for second in range(50, 0, -1)),
    )
    browser.open(cluster.url(), "pipelines")
    browser.wait_for_text("running", selector=".badge")
    browser.click("shop", ".row-link")
    browser.wait_for_text("shop", selector="h1")
    browser.wait_for(".chart canvas")
    browser.wait_for_text("select user, count(*)", selector=".pipeline-graph")
    browser.wait_for_text("the <b>sink</b> is gone", selector="td")
    write(cluster, progress(now_ms + 1_000, 4_321))
    browser.wait_for_text("4,321", selector=".figure")

    cluster.create_topic("clicks", partitions=1)
    cluster.create_topic("shop-dead-letters", partitions=1)
    headers = (("dlq.topic", b"clicks"), ("dlq.error", b"the <i>value</i> is no JSON"))
    producer = confluent_producer(cluster.bootstrap)
    confluent_send(producer, "shop-dead-letters", [Message(b"{broken", headers=headers)] * 3)
    browser.wait_for_text("the <i>value</i> is no JSON", selector=".reasons")
    browser.wait_for(".letters .row-toggle").click()
    browser.wait_for_text("{broken", selector=".letters pre")
    assert browser.accessibility_findings() == []
    browser.click("Dry run")
    browser.wait_for_text("3 letters would be sent back", selector=".note")
    browser.click("Send back")
    browser.wait_for_text("3 dead letters sent back.", selector=".toast")
    browser.open(cluster.url(), "messages/clicks")
    browser.wait_until(lambda: browser.texts("td.value") == ["{broken"] * 3, "the records are back")
