"""The scenarios that pages of the documentation name can be measured."""

import re
from pathlib import Path

from benchmarks.scenarios import REPLICATED_SCENARIOS, SCENARIOS, TLS_SCENARIOS

PAGE = Path(__file__).resolve().parents[3] / "docs/performance.md"


def test_the_scenarios_of_the_performance_page_exist() -> None:
    known = {scenario.key for scenario in (*SCENARIOS, *TLS_SCENARIOS, *REPLICATED_SCENARIOS)}
    named = [name for found in re.findall(r"--scenarios ([^`\"]+)", PAGE.read_text()) for name in found.split()]
    assert "tls-tiny-4x50" in named
    assert set(named) <= known
