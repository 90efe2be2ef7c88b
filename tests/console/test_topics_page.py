"""Topics in the browser: create, change and delete one, with all that its page shows."""

from browser import Browser
from clients import Message, confluent_producer, confluent_send
from console_cluster import ConsoleCluster
from selenium.webdriver.common.keys import Keys


def test_a_topic_is_created_changed_and_deleted(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.open(cluster.url(), "topics")
    browser.click("Create a topic")
    browser.fill("Name", "made-here")
    browser.fill("Partitions", "2")
    browser.click("Add a setting")
    browser.fill("Setting", "retention.ms")
    browser.fill("Value", "3600000")
    browser.click("Create", "dialog button")
    browser.wait_for_text("Topic made-here is created, with 2 partitions of 3 replicas.", selector=".toast")
    browser.wait_for_text("made-here", selector="h1")
    assert len(cluster.partitions("made-here")) == 2

    browser.click("Add partitions")
    browser.fill("Partitions afterwards", "4")
    browser.click("Add", "dialog button")
    browser.wait_until(lambda: len(browser.find(".replicas li.leader")) >= 4, "four leaders are shown")
    assert len(cluster.partitions("made-here")) == 4

    browser.click("Settings")
    browser.wait_for_text("3600000", selector=".settings li")
    browser.wait_for("[aria-label='Change retention.ms']").click()
    browser.fill("Value", "not a number")
    with browser.expecting("400"):
        browser.click("Change", "dialog button")
        browser.wait_for_text("retention.ms", selector="dialog .failure")
    browser.fill("Value", "7200000")
    browser.click("Change", "dialog button")
    browser.wait_for_text("retention.ms of made-here is 7200000 now.", selector=".toast")
    browser.wait_for_text("7200000", selector=".settings li")

    browser.click("Delete")
    confirm = "dialog button.danger"
    assert not browser.wait_for(confirm).is_enabled()
    browser.fill("Type", "made-elsewhere")
    assert not browser.wait_for(confirm).is_enabled()
    browser.fill("Type", "made-here")
    browser.click("Delete the topic", confirm)
    browser.wait_for_text("Topic made-here is deleted.", selector=".toast")
    browser.wait_for_text("Topics", selector="h1")
    browser.wait_until(lambda: "made-here" not in browser.texts(".row-link"), "the topic is gone from the list")


def test_refused_changes_show_what_the_broker_says(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.open(cluster.url(), "topics")
    browser.click("Create a topic")
    browser.fill("Name", "too-many")
    browser.fill("Replicas of each partition", "7")
    with browser.expecting("400"):
        browser.click("Create", "dialog button")
        browser.wait_for_text("7", selector="dialog .failure")
    browser.press(Keys.ESCAPE)
    browser.wait_until_gone("dialog")


def test_a_topic_shows_its_traffic_and_readers(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic("shown", partitions=1)
    producer = confluent_producer(cluster.bootstrap)
    browser.open(cluster.url(2), "topics/shown")
    browser.wait_for_text("Size, all replicas")

    def has_rate() -> bool:
        confluent_send(producer, "shown", [Message(b"x" * 500)] * 20)
        rates = dict(zip(browser.texts(".figure dt"), browser.texts(".figure dd"), strict=True))
        return rates.get("Records in", "–") not in {"–", "0/s"}

    browser.wait_until(has_rate, "the page shows a rate")
    browser.wait_for(".chart canvas")
    assert cluster.consume("shown", 1)
    browser.click("Consumers")
    browser.wait_for_text("sskafka", selector="td")


def test_the_list_is_used_with_the_keyboard(browser: Browser, cluster: ConsoleCluster) -> None:
    for name in ("keyboard-a", "keyboard-b"):
        cluster.create_topic(name, partitions=1)
    browser.open(cluster.url(), "topics")
    browser.wait_for_text("keyboard-b")
    browser.press("/")
    browser.press("keyboard")
    browser.wait_until(lambda: browser.texts(".row-link") == ["keyboard-a", "keyboard-b"], "two topics are found")
    browser.run("document.querySelector('.row-link').focus()")
    browser.press(Keys.ARROW_DOWN)
    browser.press(Keys.ENTER)
    browser.wait_for_text("keyboard-b", selector="h1")
    browser.wait_until(lambda: browser.run("return document.activeElement.tagName") == "H1", "the title has the focus")
