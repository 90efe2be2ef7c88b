"""The examples of the pages about commands, security and cores work as printed."""

from pathlib import Path

import pytest
from page_blocks import PAGE_SECONDS_MAX, ROOT, PageRun
from page_lists import OPERATOR_PAGES

pytestmark = pytest.mark.long


@pytest.mark.timeout(PAGE_SECONDS_MAX)
@pytest.mark.parametrize("page", OPERATOR_PAGES)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    with PageRun(tmp_path) as run:
        assert run.run(ROOT / page, given=OPERATOR_PAGES[page]) > 0
