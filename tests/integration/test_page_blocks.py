"""The examples of README and docs work as printed. tests/unit/docs/test_page_census.py checks that none is left out."""

from pathlib import Path

import pytest
from page_blocks import PAGE_SECONDS_MAX, ROOT, PageRun, commands_of, missing_lines
from page_lists import FIRST_PAGES


@pytest.mark.timeout(PAGE_SECONDS_MAX)
@pytest.mark.parametrize("page", FIRST_PAGES)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    with PageRun(tmp_path) as run:
        assert run.run(ROOT / page, given=FIRST_PAGES[page]) > 0


def test_a_broken_example_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n")
    with PageRun(tmp_path) as run, pytest.raises(AssertionError, match="assert 1 == 2"):
        run.run(page)


def test_a_command_is_read_with_its_continuation_and_its_output() -> None:
    (first, second) = commands_of("$ a \\\n    --b  # until Ctrl+C\nx\n...\n$ c\n")
    assert first == ("a --b", ["x", "..."], True)
    assert second == ("c", [], False)


@pytest.mark.parametrize(
    ("expected", "is_there"),
    [
        (["NAME  COUNT", "orders  17"], True),
        (["orders  17", "NAME  COUNT"], False),
        (["NAME  COUNT", "bills  17"], False),
        (["NAME ...", "...", "ord...  1"], True),
    ],
)
def test_numbers_and_spaces_of_the_output_may_differ(expected: list[str], is_there: bool) -> None:
    assert (missing_lines(expected, "NAME    COUNT\norders  3\n") == []) is is_there
