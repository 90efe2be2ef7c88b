"""The list of 10,000 topics: the first rows are there at once, and scrolling, sorting and searching stay fast."""

import time
from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess
from browser import Browser
from wire_connection import Connection

from sskafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

TOPICS = 10_000
PER_REQUEST = 1_000
FRAME_MS_MAX = 500
"""Time from a change of the list to the next frame that the browser draws."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("many-topics"), {"http.listener": "127.0.0.1:0"})
    try:
        broker.start()
        with Connection(broker.bootstrap) as connection:
            connection.socket.settimeout(120)
            for start in range(0, TOPICS, PER_REQUEST):
                topics = [CreatableTopic(f"topic-{number:05}", 1, 1) for number in range(start, start + PER_REQUEST)]
                answer = connection.call(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
                assert {topic.error_code for topic in answer.topics} == {0}
        yield broker
    finally:
        broker.close()


def test_ten_thousand_topics(browser: Browser, broker: BrokerProcess) -> None:
    began = time.monotonic()
    browser.open(f"http://{broker.http}", "topics")
    browser.wait_for(".row-link", timeout_s=60)
    first_s = time.monotonic() - began
    browser.wait_for_text("10,000 topics", selector=".count", timeout_s=120)
    assert len(browser.find(".row-link")) < 200, "only the rows in view are in the document"
    assert browser_ms(browser, "scrollTo(0, document.body.scrollHeight)") < FRAME_MS_MAX
    browser.wait_until(lambda: "topic-09999" in browser.texts(".row-link"), "the last row is in view")
    browser.run("scrollTo(0, 0)")
    assert browser_ms(browser, "document.querySelector('th .sort').click()") < FRAME_MS_MAX
    browser.wait_until(lambda: browser.texts(".row-link")[0] == "topic-09999", "the list is sorted the other way")
    browser.press("/")
    browser.press("04711")
    browser.wait_until(lambda: browser.texts(".row-link") == ["topic-04711"], "one topic is found")
    browser.wait_for_text("1 topic of 10000", selector=".count")
    browser.wait_for_text("none", selector="td")  # its own settings are read when it is in view
    assert first_s < 20, "the first rows come from a small page"


def browser_ms(browser: Browser, script: str) -> float:
    """Return the time from a change to the next frame that the browser draws."""
    measured = """
        const done = arguments[0];
        const began = performance.now();
        SCRIPT;
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
    """
    return float(browser.driver.execute_async_script(measured.replace("SCRIPT", script)))  # type: ignore[no-untyped-call]
