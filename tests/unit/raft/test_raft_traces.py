"""Commands and all that comes of them, in text files that are read as a diff when the machine changes.

pytest tests/unit/raft --rewrite-traces     writes the files anew
"""

from pathlib import Path

import pytest
from trace_script import Script

TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))


def _replay(text: str) -> str:
    """The file as the machine would write it: comments and commands stay, everything else is what comes of them."""
    script, lines = Script(), []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, *script.run(line[2:])]
        elif line.startswith("#") or not line.strip():
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_trace(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.read_text()
    actual = _replay(expected)
    if request.config.getoption("--rewrite-traces", default=False):
        path.write_text(actual)
    else:
        assert actual == expected


def test_traces_are_found() -> None:
    assert len(TRACES) >= 7
