"""Every page: it opens, the browser has nothing to complain about, and axe finds nothing serious."""

import re
from pathlib import Path

import pytest
from browser import DESKTOP, PHONE, Browser
from console_cluster import ConsoleCluster

from sskafka.servers.http.routes.console import DIRECTORY

PAGES = re.findall(r'name: "(\w+)"', (DIRECTORY / "pages.js").read_text(encoding="utf-8"))
LOOKS = [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE)]


@pytest.mark.parametrize(("scheme", "size"), LOOKS, ids=["light", "dark", "phone"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page(
    browser: Browser, cluster: ConsoleCluster, page: str, scheme: str, size: tuple[int, int], tmp_path: Path
) -> None:
    browser.prefer(scheme)
    browser.resize(*size)
    browser.open(cluster.url(), page)
    browser.wait_until(lambda: "Loading" not in browser.text, "the page has loaded")
    browser.wait_for_text("live", selector=".connection")
    browser.screenshot(tmp_path / f"{page}.png")
    assert not browser.find(".failure")
    assert browser.accessibility_findings() == []
    overflow = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow == 0, "the page is wider than the window"


def test_unknown_pages_lead_back(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.open(cluster.url(), "nothing")
    browser.wait_for_text("There is no page “nothing”.")
    browser.click("Go to the overview.")
    browser.wait_for_text("Brokers", selector="h2")


def test_colours_are_chosen_and_kept(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.open(cluster.url())
    background = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(background)
    for _ in range(2):  # from auto to light, from light to dark
        browser.wait_for("header.top .icon-button").click()
    dark = browser.run(background)
    assert dark != light
    browser.open(cluster.url())
    assert browser.run(background) == dark
    browser.wait_for("header.top .icon-button").click()
    assert browser.run(background) == light


def test_the_skip_link_leads_to_the_content(browser: Browser, cluster: ConsoleCluster) -> None:
    browser.open(cluster.url(), "overview")
    browser.run("document.querySelector('.skip-link').focus()")
    browser.press("\n")
    assert browser.run("return document.activeElement.id") == "main"
    assert browser.driver.current_url.endswith("#/overview")
