"""The benchmark of the console opens every page."""

import re

from benchmarks.console import PAGES, requests_of_pages

from sskafka.servers.http.routes.console import DIRECTORY
from sskafka.servers.http.routes.events import STREAMS_MAX


def test_every_page_is_open() -> None:
    navigation = re.findall(r'name: "(\w+)"', (DIRECTORY / "pages.js").read_text(encoding="utf-8"))
    assert set(navigation) <= set(PAGES)
    assert len(PAGES) <= STREAMS_MAX
    asked = {request.page for request in requests_of_pages("orders", "orders") if "/events" not in request.path}
    assert asked == set(PAGES)
