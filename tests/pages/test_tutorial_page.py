"""docs/tutorial-pipelines.md: every file and command of it, and what the commands print."""

import os
import sys
from pathlib import Path

import pytest
from page import DOCS, PageRun, blocks, free_port

PAGE = "tutorial-pipelines.md"
KINDS = {"settings", "file", "run", "serve until", "output"}


def test_the_tutorial_runs_as_it_is_written(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SSKAFKA_BOOTSTRAP": f"127.0.0.1:{free_port()}",
    }
    with PageRun(tmp_path, environment) as page:
        for block in blocks(PAGE):
            page.perform(block)


def test_every_block_of_the_tutorial_is_run() -> None:
    found = list(blocks(PAGE))
    assert {block.kind for block in found} == KINDS
    assert len(found) == (DOCS / PAGE).read_text().count("\n```") / 2


@pytest.mark.parametrize(
    ("expected", "printed", "is_there"),
    [
        ("a ... c\n", "x\na  b c   \ny\n", True),
        ("a ... c\nd\n", "a b c\nD\n", False),
        ("1\n2\n", "0\n1\n2\n3\n", True),
        ("1\n2\n", "1\n3\n2\n", False),
    ],
)
def test_what_a_page_says_is_compared(tmp_path: Path, expected: str, printed: str, is_there: bool) -> None:
    with PageRun(tmp_path, {"PATH": os.environ["PATH"]}) as page:
        page.printed = printed
        assert page.has_printed(expected) is is_there
