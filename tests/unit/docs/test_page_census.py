"""Every example of README and docs is run or checked by a test, or says why it is not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from page_blocks import FILE, LEFT_OUT, ROOT, PageBlock, blocks_of, commands_of, is_run
from page_lists import CONTAINER_LINES, KAFKA_PAGES, OWN_TESTS, PAGES, SPARK_PAGES

from sskafka.client.config import ConnectionConfig, configured, unknown_properties
from sskafka.model.properties import parse_properties
from sskafka.model.settings import Settings
from sskafka.pipelines.files.cases import load_cases
from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.files.variables import FileOptions

DOCUMENTS = [str(page.relative_to(ROOT)) for page in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))]
REASONS = (
    "needs a broker with mistakes",
    "needs a registry of images",
    "needs systemd",
    "takes minutes",
)
"""How a reason begins: one that holds on any machine that runs the tests. It also names a test that shows the same."""
PAGE_MARKS = ("settings", "file: ", "run", "serve until: ", "output")
"""Of the pages that tests/pages runs (tests/pages/page.py), and tests with YARN and Kubernetes."""
FENCE = re.compile(r"^[ \t>]*(?:`{3}|~{3})", re.MULTILINE)
COMMAND = re.compile(r"^(\$ |sskafka |kafka-[a-z-]+\.sh |make |curl |docker )", re.MULTILINE)
PIPELINE = {
    "name": "orders",
    "sources": {
        "orders": {"topic": "orders", "schema": "id long, user string, amount double"},
        "users": {"topic": "users", "schema": "user string"},
    },
    "transform": {"sql": "select * from orders"},
    "sinks": [{"parquet": {"path": "out"}}],
}
"""To which a part of a pipeline file is added, so that the whole can be read."""
UNKNOWN_SETTING = "unknown"


def blocks(language: str) -> Iterator[tuple[str, PageBlock]]:
    for page in DOCUMENTS:
        yield from ((page, block) for block in blocks_of(ROOT / page) if block.language == language)


def is_checked(page: str, block: PageBlock) -> bool:
    """Return whether a test of this file, or one that runs pages, takes the block."""
    if block.mark.startswith("not run: "):
        return True
    if page in SPARK_PAGES and (block.mark.startswith(PAGE_MARKS) or block.mark == "with Spark"):
        return True
    lines = [command.line for command in commands_of(block.text)]
    if block.mark == "with containers":
        return set(lines) <= set(CONTAINER_LINES)
    if block.mark == "with Kafka's tools":
        return page in KAFKA_PAGES and all(line.startswith("kafka-") for line in lines)
    match block.language:
        case "console":
            return (page in PAGES and is_run(block)) or (page in OWN_TESTS and not block.mark)
        case "python":
            return page in PAGES and is_run(block)
        case "properties":
            return block.mark in {"", "properties of a client"} or (page in PAGES and is_run(block))
        case "yaml" | "json":
            return not block.mark or block.mark.startswith("file: ")
        case "":
            return COMMAND.search(block.text) is None  # drawings, signatures, output
        case _:
            return False


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_block_is_run_or_checked_or_says_why_not(page: str) -> None:
    left = [
        f"{page}:{block.line} ({block.language})" for block in blocks_of(ROOT / page) if not is_checked(page, block)
    ]
    assert left == []


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_block_that_is_not_run_has_a_reason_that_holds_anywhere(page: str) -> None:
    for block in blocks_of(ROOT / page):
        if block.mark.startswith("not run: "):
            reason = block.mark.removeprefix("not run: ")
            tests = re.findall(r"(?:tests/)?[\w/]*test_\w+\.py|make [a-z-]+", reason)
            assert reason.startswith(REASONS), f"{page}:{block.line}: {reason}"
            assert tests, f"{page}:{block.line} names no test"
            for test in tests:
                assert test.startswith("make ") or list((ROOT / "tests").rglob(Path(test).name)), test


def test_the_lists_name_pages_and_tests_that_exist() -> None:
    assert set(PAGES) | set(OWN_TESTS) | set(SPARK_PAGES) | set(KAFKA_PAGES) <= set(DOCUMENTS)
    tests = (*OWN_TESTS.values(), *SPARK_PAGES.values(), *KAFKA_PAGES.values())
    assert all((ROOT / test).is_file() for test in tests)


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_line_that_is_left_out_runs_elsewhere(page: str) -> None:
    for block in blocks_of(ROOT / page):
        if not is_run(block):
            continue
        lines = [command.line for command in commands_of(block.text)]
        left_out = [line for line in lines if line.startswith(tuple(LEFT_OUT))]
        assert not lines or left_out != lines, f"{page}:{block.line}: nothing of it is run"
        for line in left_out:
            if line.startswith("docker"):
                assert line in CONTAINER_LINES, f"{page}:{block.line}: {line}"
            if line.startswith("kcat"):
                assert page in KAFKA_PAGES, f"{page}:{block.line}: {line}"


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_fence_begins_or_ends_a_block(page: str) -> None:
    """A block that is indented, or has options behind its language, would be seen by none of these tests."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(FENCE.findall(text)) == 2 * sum(1 for _ in blocks_of(ROOT / page))


def test_an_example_without_a_test_would_be_found() -> None:
    examples = {"console": "$ sskafka topic list\n", "sh": "ls\n", "python": "1\n", "": "$ make test\n"}
    for language, text in examples.items():
        assert not is_checked("docs/comparison.md", PageBlock(language, text, "", 1)), language
    assert not is_checked("README.md", PageBlock("console", "$ docker ps\n", "with containers", 1))
    assert not is_checked("README.md", PageBlock("console", "$ ls\n", "with Kafka's tools", 1))


def test_a_page_of_a_list_has_something_to_run() -> None:
    for page in PAGES:
        assert any(is_run(block) for block in blocks_of(ROOT / page)), page


# -- settings


@pytest.mark.parametrize("page", DOCUMENTS)
def test_brokers_accept_the_settings_of_a_page(page: str) -> None:
    """One block adds to those before it, as its reader would."""
    properties: dict[str, str] = {}
    for block in blocks_of(ROOT / page):
        if block.language == "properties" and not block.mark:
            added = parse_properties(block.text)
            assert added, f"{page}:{block.line}"
            properties |= added
    warnings = Settings.resolve(properties, host_name="kafka1.example.com").warnings
    assert [warning for warning in warnings if UNKNOWN_SETTING in warning] == []


def test_each_step_to_a_closed_cluster_is_accepted() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    _, _, section = text.partition("## From an open cluster to a closed one")
    steps = re.findall(r"^```properties\n(.*?)^```", section.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    properties: dict[str, str] = {}
    for step in steps:
        properties |= parse_properties(step)
        assert Settings.resolve(properties).listeners
    assert len(steps) == 5


def test_an_unknown_setting_would_be_found() -> None:
    assert any(UNKNOWN_SETTING in warning for warning in Settings.resolve({"log.retenton.ms": "1"}).warnings)


def test_clients_accept_their_properties() -> None:
    marks = ("properties of a client", f"{FILE}alice.properties")
    found = [block for _, block in blocks("properties") if block.mark in marks]
    assert len(found) == 2
    for block in found:
        properties = parse_properties(block.text)
        assert unknown_properties(properties) == {}
        assert configured(ConnectionConfig, {"security.protocol": "SASL_PLAINTEXT", **properties})


# -- data


def test_lines_of_json_are_json() -> None:
    found = [line for _, block in blocks("json") for line in block.text.splitlines()]
    broken = [line for line in found if not _is_json(line)]
    assert len(found) > 5
    assert broken == ["hello"], "the tutorial has one broken record on purpose"


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


# -- pipeline files


def test_pipeline_files_and_parts_of_them_can_be_read(tmp_path: Path) -> None:
    read = 0
    for page, block in blocks("yaml"):
        document = yaml.safe_load(block.text)
        if "cases" in document:
            continue
        file = tmp_path / f"{Path(page).stem}-{block.line}.yaml"
        whole = document if {"sources", "sinks"} <= set(document) else {**PIPELINE, **document}
        file.write_text(yaml.safe_dump({"name": "orders", **whole}, sort_keys=False), encoding="utf-8")
        secrets = dict.fromkeys(re.findall(r"\$\{secret:([\w-]+)\}", block.text), "secret")
        (tmp_path / "shouting.py").write_text("def shouted(spark):\n    return None\n")
        assert load_pipeline(file, FileOptions(environment=secrets)).sinks, f"{page}:{block.line}"
        read += 1
    assert read > 5


@pytest.mark.parametrize("page", ["docs/pipelines.md", "docs/tutorial-pipelines.md"])
def test_cases_of_pipelines_fit_their_pipeline(page: str, tmp_path: Path) -> None:
    found = [block.text for block in blocks_of(ROOT / page) if block.language == "yaml"]
    pipeline = next(text for text in found if "sources" in yaml.safe_load(text))
    (cases,) = (text for text in found if "cases" in yaml.safe_load(text))
    (tmp_path / "shop.yaml").write_text(pipeline)
    (tmp_path / "shop.test.yaml").write_text(cases)
    assert load_cases(tmp_path / "shop.test.yaml")
