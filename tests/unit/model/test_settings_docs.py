from pathlib import Path

from sskafka.model.settings_docs import configuration_page

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_committed_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == configuration_page(), "run: python docs/generate.py"
