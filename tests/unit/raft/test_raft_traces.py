"""Golden traces: text files with commands and their complete output, reviewed as a diff when the state machine changes.

pytest tests/unit/raft --rewrite-traces     rewrites the files
"""

from pathlib import Path

import pytest
from trace_script import Script

TRACES = sorted((Path(__file__).parent / "traces").glob("*.txt"))


def _replay(text: str) -> str:
    """Return the file with the current output: comments and commands are kept, all other lines are replaced."""
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
