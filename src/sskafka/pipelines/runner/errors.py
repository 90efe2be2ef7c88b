"""Errors of a run in one sentence. Spark wraps the cause in long stack traces of Java and Python."""

import re
from pathlib import Path

from sskafka.pipelines.spark_log import written_log

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in (\S+)', re.MULTILINE)
_LIBRARIES = ("site-packages", "dist-packages", "pyspark.zip", "/pyspark/", "<", "lib/python3")
_CAUSE = re.compile(r"^\s*(?:Caused by: )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)): (.+)$")
_WRAPPERS = ("PySpark", "StreamingQueryException", "SparkException", "PythonException", "AnalysisException")
_NOISE = re.compile(r"\s*SQLSTATE: \w+(;.*)?\s*$")


class PipelineRunError(Exception):
    """A pipeline cannot run, or has ended with an error; `hint` says what to do, or where to read more."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        log = written_log()
        self.hint = hint or (f"Spark's log {log} has the details" if log else "")


def failure_text(error: Exception) -> str:
    """Return the sentence that explains why a run has failed."""
    return str(error) if isinstance(error, PipelineRunError) else explained(error)


def explained(error: BaseException) -> str:
    """Return the innermost cause that the text of an error names, with its position if that is in the user's code."""
    kind, sentence = _cause(error)
    position = "" if kind.startswith("sskafka.") else user_code_position(str(error))
    return f"{sentence} ({position})" if position and position not in sentence else sentence


def user_code_position(text: str) -> str:
    """Return file, line and function of the innermost frame of a Python stack trace that is not in a library."""
    frames = [found for found in _FRAME.findall(text) if not any(part in found[0] for part in _LIBRARIES)]
    if not frames:
        return ""
    file, line, function = frames[-1]
    return f"{Path(file).name}:{line}, in {function}"


def _cause(error: BaseException) -> tuple[str, str]:
    """Return class and message of the innermost cause."""
    text = str(error)
    causes = [found for found in map(_CAUSE.match, text.splitlines()) if found]
    own = [found for found in causes if not found[1].rpartition(".")[2].startswith(_WRAPPERS)]
    chosen = own or causes
    if not chosen:
        first = text.strip().split("\n\n")[0].splitlines()[0] if text.strip() else type(error).__name__
        return "", _NOISE.sub("", first)
    kind, message = chosen[-1].groups()
    return kind, _NOISE.sub(
        "", f"{kind}: {message}" if kind == "KeyError" else message
    )  # the message of a KeyError is the key
