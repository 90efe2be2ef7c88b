"""Charts in the browser begin with what the broker has kept."""

import time

import requests
from browser import Browser
from clients import Message, confluent_producer, confluent_send
from console_cluster import ConsoleCluster


def test_charts_begin_before_the_page_was_opened(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic("charted", partitions=1)
    producer = confluent_producer(cluster.bootstrap)
    topic = "history/topics/charted"

    def points(path: str) -> list[dict[str, float]]:
        confluent_send(producer, "charted", [Message(b"x" * 1000)])
        answer = requests.get(f"{cluster.url()}/api/v1/{path}", timeout=10).json()
        return [point for point in answer["points"] if point["bytes_in"]]

    browser.wait_until(lambda: len(points("history/load")) > 1 and len(points(topic)) > 1, "the broker keeps points")
    opened_ms = time.time() * 1000
    browser.open(cluster.url())
    script = """
        const done = arguments[0];
        const module = new URL("console/lib/load_history.js", document.baseURI);
        import(module).then(({ loadHistory }) => done(loadHistory.get().points));
    """
    shown = browser.wait_until(
        lambda: [one for one in browser.run_async(script) if one["time_s"] * 1000 < opened_ms], "points from before"
    )
    assert any(one["bytes_in"] and one["requests"] for one in shown)
    browser.open(cluster.url(), "topics/charted")
    browser.wait_until(lambda: "in: –" not in _chart_label(browser), "the topic's chart has a newest value")


def _chart_label(browser: Browser) -> str:
    return str(browser.run("return document.querySelector('.chart [role=img]')?.getAttribute('aria-label') ?? 'in: –'"))
