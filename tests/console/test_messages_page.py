"""The messages page: records of strangers, a million records, searches, live tails, and records that are written."""

import asyncio
import json
import time
from functools import partial

import pytest
from browser import PHONE, Browser
from console_clients import TIMEOUT_S, create_topic, new_producer
from console_cluster import ConsoleCluster
from selenium.webdriver.common.keys import Keys

from sskafka.client.cluster import Cluster
from sskafka.model.ids import TopicPartition
from sskafka.records.builder import BatchBuilder
from sskafka.servers.http.record_writer import BuiltBatch, append

BATCH_RECORDS = 10_000
MILLION = 1_000_000
FIRST_PAGE_MS_MAX = 1_000
SEARCH_SECONDS_MAX = 120


HOSTILE = {
    "html": b"<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\"><b id=bold>b</b>",
    "bytes": bytes(range(256)),
    "large": json.dumps({"text": "x" * 1_000_000}).encode(),
    "bidi": "\u202eevil\u2066 \x1b[31mred\x07 zero\u200bwidth".encode(),
    "nested": b"[" * 50_000,
    "digits": b'{"n": 9007199254740993, "a": [], "o": {"b": 1}}',
}


@pytest.fixture(scope="module")
def hostile(cluster: ConsoleCluster) -> str:
    create_topic(cluster, "hostile")
    producer = new_producer(cluster, message_max_bytes=1_048_000)
    for name, value in HOSTILE.items():
        producer.produce("hostile", value, key=name, headers=[("h<i>", b"\xff\xfe"), ("none", None)])
    producer.produce("hostile", None, key="gone")
    assert producer.flush(TIMEOUT_S) == 0
    return "hostile"


def open_record(browser: Browser, key: str) -> str:
    """Open the record with this key and return the text of its details."""
    if browser.find("tr.details"):
        browser.wait_for("tr.open .row-toggle").click()
        browser.wait_until_gone("tr.details")
    script = """
        const rows = [...document.querySelectorAll(".records tbody tr")];
        const row = rows.find((one) => one.cells[3]?.innerText === arguments[0]);
        row?.querySelector(".row-toggle").click();
        return Boolean(row);
    """
    browser.wait_until(lambda: browser.run(script, key), f"the record {key!r} is there")
    browser.wait_for("tr.details pre, tr.details dl")
    return "\n".join(browser.texts("tr.details"))


def test_hostile_records_are_harmless(browser: Browser, cluster: ConsoleCluster, hostile: str) -> None:
    browser.open(cluster.url(), f"messages/{hostile}")
    browser.wait_for_text("7 records of about 7")
    assert "<script>document.title='pwned'</script>" in open_record(browser, "html")
    assert not browser.find("main script, main img, #bold, main i")
    assert "h<i>" in browser.text
    assert browser.driver.title == "hostile · SSKafka"
    shown = open_record(browser, "bidi")
    assert all(mark in shown for mark in ("U+202E", "U+2066", "\\x1b", "\\x07", "U+200B"))
    assert not any(odd in shown for odd in "\u202e\u2066\x1b\x07\u200b")
    assert "0000f0  f0 f1 f2" in open_record(browser, "bytes")
    assert '"n": 9007199254740993,\n  "a": [],' in open_record(browser, "digits")
    assert "[[[[" in open_record(browser, "nested")
    open_record(browser, "large")
    browser.click("Show all 977 KiB")
    browser.wait_for_text("Only the first 200,000 characters are shown")
    assert "null" in open_record(browser, "gone")
    assert browser.accessibility_findings() == []


def test_the_page_of_a_phone_is_not_wider_than_the_phone(
    browser: Browser, cluster: ConsoleCluster, hostile: str
) -> None:
    browser.resize(*PHONE)
    browser.open(cluster.url(), f"messages/{hostile}")
    browser.wait_for_text("7 records of about 7")
    open_record(browser, "html")
    assert browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


@pytest.fixture(scope="module")
def million(cluster: ConsoleCluster) -> str:
    """A topic of two partitions with a million records of JSON: {"n": 0} to {"n": 9999}, again and again."""
    create_topic(cluster, "million", partitions=2)
    builder, now_ms = BatchBuilder(), int(time.time() * 1000)  # retention would delete old records
    for number in range(BATCH_RECORDS):
        builder.append(b"%d" % number, b'{"n": %d, "name": "record %d"}' % (number, number), (), now_ms)
    batch = bytes(builder.build())

    async def work() -> None:
        async with Cluster(cluster.bootstrap) as client:
            for number in range(MILLION // BATCH_RECORDS):
                partition = TopicPartition("million", number % 2)
                built = BuiltBatch(bytearray(batch), BATCH_RECORDS)
                # The leader of a new topic may not know that it leads.
                await client.retrying(partial(append, client, partition, built), topics=["million"])

    asyncio.run(work())
    return "million"


DURATIONS_OF_PAGES = """
    const requests = performance.getEntriesByType("resource").filter((one) => one.name.includes("/records?"));
    return requests.map((one) => one.duration);
"""
"""Milliseconds that the requests for pages of records took, as the browser saw it."""


def test_the_first_page_of_a_million_records_is_there_within_a_second(
    browser: Browser, cluster: ConsoleCluster, million: str
) -> None:
    browser.open(cluster.url(), f"messages/{million}")
    browser.wait_for_text("50 records of about 1,000,000")
    for _ in range(2):  # the machine may be busy with something else
        browser.click("Refresh")
        browser.wait_until(lambda: len(browser.find(".records tbody tr")) == 50, "a page of records is there")
    assert min(browser.run(DURATIONS_OF_PAGES)) < FIRST_PAGE_MS_MAX
    browser.click("Older records")
    browser.wait_for_text("100 records of about 1,000,000")


NOTE_PROGRESS = """
    window.seen = new Set();
    const note = () => seen.add(document.querySelector(".table-tools .count")?.innerText);
    new MutationObserver(note).observe(document.body, {subtree: true, childList: true, characterData: true});
"""


def test_a_search_through_100_000_records_shows_its_progress(
    browser: Browser, cluster: ConsoleCluster, million: str
) -> None:
    browser.open(cluster.url(), f"messages/{million}?order=oldest&from=-50000")
    browser.fill("Filter", "value.n >= 9998 and not key == '9998'")
    browser.run(NOTE_PROGRESS)
    browser.click("Search")
    browser.wait_for_text("The search reached the end of the log.", SEARCH_SECONDS_MAX)
    assert "100,000 records looked at, 10 matched" in browser.text
    assert len(browser.find(".records tbody tr")) == 10
    progress = [text for text in browser.run("return [...seen]") if text and "looked at" in text]
    assert len(progress) > 1, progress
    browser.click("Back to all records")
    browser.wait_for_text("50 records of about 1,000,000")


def test_a_search_is_stopped(browser: Browser, cluster: ConsoleCluster, million: str) -> None:
    browser.open(cluster.url(), f"messages/{million}?order=oldest&filter=value.n%20%3C%200")
    browser.click("Search")
    browser.wait_for_text("records looked at")
    browser.click("Stop")
    browser.wait_for_text("Stopped.")
    assert "No record matches." in browser.text


def test_a_wrong_filter_names_the_column(browser: Browser, cluster: ConsoleCluster, hostile: str) -> None:
    browser.open(cluster.url(), f"messages/{hostile}")
    browser.fill("Filter", "value.n = 5")
    browser.wait_for_text("column 9: unexpected '='; write ==")
    assert not next(one for one in browser.find("button") if one.text == "Search").is_enabled()
    assert browser.accessibility_findings() == []


def test_records_are_written_followed_and_sent_again(browser: Browser, cluster: ConsoleCluster) -> None:
    create_topic(cluster, "written", partitions=2)
    create_topic(cluster, "written-again")
    browser.open(cluster.url(), "messages/written")
    browser.wait_for_text("There are no records in this direction.")
    browser.click("Live tail")
    browser.wait_for_text("Waiting for new records")
    browser.wait_for_text("0 records looked at")
    browser.click("Produce")
    browser.fill("Key", "k-1")
    browser.fill("Value", '{"user": {"id": 7}}')
    browser.fill("Headers", "trace: abc")
    assert browser.accessibility_findings() == []
    browser.press(Keys.TAB)
    browser.click("Produce", "dialog footer button")
    browser.wait_for_text("at offset 0.", selector=".toast")
    browser.wait_for_text('{"user": {"id": 7}}', selector=".records td.value")
    browser.click("Stop")
    assert "trace" in open_record(browser, "k-1")
    browser.click("Send again")
    browser.fill("To topic", "written-again")
    browser.click("Send", "dialog footer button")
    browser.wait_for_text("Stored in written-again-0 at offset 0.", selector=".toast")
    browser.open(cluster.url(), "messages/written-again")
    assert '"id": 7' in open_record(browser, "k-1")
    browser.click("Copy as command", "tr.details button")
    browser.wait_for_text("kcat -C -b")
    assert "sskafka topic consume written-again" in browser.text


def test_records_are_downloaded(browser: Browser, cluster: ConsoleCluster, hostile: str) -> None:
    browser.open(cluster.url(), f"messages/{hostile}?filter=key%20%3D%3D%20%22digits%22")
    link = next(one for one in browser.find(".page-title a.button") if one.text == "Download")
    text = browser.driver.execute_async_script(  # type: ignore[no-untyped-call]
        "fetch(arguments[0]).then((one) => one.text()).then(arguments[1])", link.get_attribute("href")
    )
    (line,) = text.splitlines()
    assert json.loads(line)["value"]["data"] == HOSTILE["digits"].decode()
