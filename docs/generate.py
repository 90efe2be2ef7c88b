"""Writes the pages under docs/ that are drawn from the code: run `python docs/generate.py` after changing a setting."""

from pathlib import Path

from sskafka.model.settings_docs import configuration_page

if __name__ == "__main__":
    (Path(__file__).parent / "configuration.md").write_text(configuration_page(), encoding="utf-8")
