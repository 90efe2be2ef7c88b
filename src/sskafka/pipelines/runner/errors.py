"""What went wrong in a run, in one sentence: Spark wraps the cause into pages of two languages' stack traces."""

import re

_CAUSE = re.compile(r"^\s*(?:Caused by: )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)): (.+)$")
_WRAPPERS = ("PySpark", "StreamingQueryException", "SparkException", "PythonException", "AnalysisException")
_NOISE = re.compile(r"\s*SQLSTATE: \w+(;.*)?\s*$")


class PipelineRunError(Exception):
    """A pipeline cannot run, or has ended with an error."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def explained(error: BaseException) -> str:
    """The innermost cause that the text of an error names."""
    text = str(error)
    causes = [found for found in map(_CAUSE.match, text.splitlines()) if found]
    own = [found for found in causes if not found[1].rpartition(".")[2].startswith(_WRAPPERS)]
    chosen = own or causes
    if not chosen:
        return _NOISE.sub("", text.strip().split("\n\n")[0].splitlines()[0] if text.strip() else type(error).__name__)
    return _NOISE.sub("", chosen[-1][2])
