"""`make screenshots`: docs/images/console-*.png, from a real cluster with producers and consumers."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PHONE, Browser
from clients import confluent_consumer, confluent_producer
from console_cluster import ConsoleCluster

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
BYTES_MAX = 150_000
PICTURE = (1360, 900)
CHART_S = 45
"""How long the charts are filled."""

pytestmark = pytest.mark.skipif(os.environ.get("SCREENSHOTS") != "write", reason="only `make screenshots` writes them")


@pytest.fixture
def traffic(cluster: ConsoleCluster) -> Iterator[None]:
    """Orders and payments, which a group reads."""
    cluster.create_topic("orders", partitions=6, min_insync_replicas=2)
    cluster.create_topic("payments", partitions=3, retention_ms=604800000)
    cluster.create_topic("customers", partitions=3, cleanup_policy="compact")
    ended = threading.Event()
    workers = [threading.Thread(target=work, args=(cluster.bootstrap, ended)) for work in (_produce, _consume)]
    for worker in workers:
        worker.start()
    yield
    ended.set()
    for worker in workers:
        worker.join()


def _produce(bootstrap: str, ended: threading.Event) -> None:
    producer = confluent_producer(bootstrap)
    number = 0
    while not ended.wait(0.1):
        for _ in range(30 + number // 30 % 40):
            number += 1
            order = {"order": number, "customer": f"c-{number % 97}", "amount": number * 7 % 500, "note": "x" * 120}
            producer.produce("orders", json.dumps(order), key=f"c-{number % 97}")
            if number % 3 == 0:
                producer.produce("payments", json.dumps({"order": number}), key=str(number))
        producer.poll(0)
    producer.flush()


def _consume(bootstrap: str, ended: threading.Event) -> None:
    options = {
        "group_id": "billing",
        "client_id": "billing-1",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": True,
    }
    consumer = confluent_consumer(bootstrap, **options)
    consumer.subscribe(["orders", "payments"])
    while not ended.is_set():
        consumer.consume(500, 0.2)
    consumer.close()


@pytest.mark.usefixtures("traffic")
def test_screenshots(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.resize(*PICTURE)
    browser.open(cluster.url())
    points = "return document.querySelectorAll('.chart canvas').length"
    browser.wait_until(lambda: browser.run(points) == 3, "the charts are drawn")
    threading.Event().wait(CHART_S)  # the charts show what happens in this time
    browser.wait_for_text("Nothing needs attention.")
    _write(browser, "overview")
    _show(browser, "topics/orders")
    browser.wait_for_text("Partition map")
    threading.Event().wait(CHART_S / 3)
    _write(browser, "topic")
    browser.prefer("dark")
    _show(browser, "overview")
    browser.wait_for_text("Nothing needs attention.")
    _write(browser, "dark")
    browser.resize(*PHONE)
    browser.wait_for_text("Nothing needs attention.")
    _write(browser, "phone")


def _show(browser: Browser, page: str) -> None:
    """Go to another page as a click does: the history of the charts stays."""
    browser.run("location.hash = `#/${arguments[0]}`", page)


def _write(browser: Browser, name: str) -> None:
    path = IMAGES / f"console-{name}.png"
    browser.run("scrollTo(0, 0)")
    browser.screenshot(path)
    assert path.stat().st_size < BYTES_MAX, f"{path.name} is large"
