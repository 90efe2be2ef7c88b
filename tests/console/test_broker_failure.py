"""Brokers that fail while they are shown: the page says so, and recovers by itself."""

from browser import Browser
from console_cluster import ConsoleCluster

REFUSED = "net::ERR_"
"""The browser reports every request to a broker that is down."""


def wait_until_well(browser: Browser, cluster: ConsoleCluster) -> None:
    """Return when the page says so. Topics of other tests get their preferred leaders back when these are in sync."""

    def is_well() -> bool:
        cluster.elect_preferred_leaders()
        return any("Nothing needs attention." in text for text in browser.texts("body"))

    browser.wait_until(is_well, "nothing needs attention", timeout_s=60)


def test_the_broker_of_the_page_is_killed(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.open(cluster.url(3))
    browser.wait_for_text("live", selector=".connection")
    with browser.expecting(REFUSED):
        cluster.kill(3)
        browser.wait_for_text("does not answer", selector=".banner")
        browser.wait_for_text("not connected", selector=".connection")
        cluster.start_broker(3)
        browser.wait_for_text("live", selector=".connection", timeout_s=60)
        browser.wait_until_gone(".banner")
    cluster.wait_for_brokers([1, 2, 3])
    wait_until_well(browser, cluster)


def test_another_broker_is_killed(browser: Browser, cluster: ConsoleCluster) -> None:
    cluster.create_topic("replicated", partitions=3)
    browser.open(cluster.url(1))
    wait_until_well(browser, cluster)
    cluster.kill(2)
    browser.wait_for_text("Broker 2", selector=".attention", timeout_s=60)
    browser.wait_for_text("is fenced", selector=".attention")
    browser.wait_for_text("Next step: ", selector=".attention")
    browser.wait_for_text("fenced", selector="tbody .badge")
    cluster.start_broker(2)
    cluster.wait_for_brokers([1, 2, 3])
    cluster.wait_for_isr("replicated", [1, 2, 3])
    wait_until_well(browser, cluster)
