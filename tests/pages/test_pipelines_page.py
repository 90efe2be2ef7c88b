"""docs/pipelines.md: its blocks with Spark, in order: commands, a test, and programs with a session of their own."""

from pathlib import Path

import pytest
import yaml
from page_blocks import ROOT, PageBlock, PageRun, blocks_of
from page_servers import Addresses

PAGE = ROOT / "docs" / "pipelines.md"
LINE_SECONDS_MAX = 300
GIVEN = """
$ sskafka topic create clicks && sskafka topic create orders && sskafka topic create out && sskafka topic create counts
$ echo '{"user": "anna", "page": "/", "at": "2026-01-05T10:00:00Z", "ms": 5}' | sskafka topic produce clicks
$ echo 'not JSON' | sskafka topic produce clicks
$ echo 'k:3 apples' | sskafka topic produce orders --key-separator :
$ sskafka pipeline run clicks.yaml --once
"""
SESSION = """
from sskafka.pipelines.session import SessionSettings, start_session

spark = start_session(SessionSettings())
"""
"""What an example that begins with `spark` has."""
FIRST_BATCH = """
import time

assert spark.streams.active
for query in spark.streams.active:
    while query.lastProgress is None and query.exception() is None:
        time.sleep(0.2)
    query.stop()
    assert query.exception() is None, query.exception()
"""
"""An example that starts a query has done its work when the query has a micro-batch."""


def with_session(block: PageBlock) -> PageBlock:
    if block.language != "python" or "def test_" in block.text:
        return block
    begin = "" if "SparkSession" in block.text else SESSION
    end = FIRST_BATCH if ".start()" in block.text else ""
    return block._replace(text=begin + block.text + end, mark="")


def files(directory: Path) -> None:
    """Write the first pipeline of the page, and its test cases."""
    found = [block.text for block in blocks_of(PAGE) if block.language == "yaml"]
    (directory / "clicks.yaml").write_text(found[0])
    (cases,) = (text for text in found if "cases" in yaml.safe_load(text))
    (directory / "clicks.test.yaml").write_text(cases)


def test_the_blocks_with_spark_run(bootstrap: str, tmp_path: Path) -> None:
    files(tmp_path)
    with PageRun(tmp_path, at=Addresses(bootstrap, "", ""), line_seconds_max=LINE_SECONDS_MAX) as run:
        run.run_console(GIVEN)
        blocks = [block for block in blocks_of(PAGE) if block.mark == "with Spark"]
        assert len(blocks) == 6
        for block in blocks:
            run.run_block(with_session(block))


def test_an_example_with_a_mistake_is_found(tmp_path: Path) -> None:
    block = with_session(PageBlock("python", "raise RuntimeError(17)\n", "with Spark", 1))
    with PageRun(tmp_path) as run, pytest.raises(AssertionError, match="17"):
        run.run_block(block._replace(text="raise RuntimeError(17)\n"))
