"""Errors of a run in one sentence. Spark wraps the cause in long stack traces of Java and Python."""

import re
import traceback
from pathlib import Path

from sskafka.pipelines.spark_log import written_log

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in (\S+)', re.MULTILINE)
_SSKAFKA = str(Path(__file__).parents[2])
_LIBRARIES = ("site-packages", "dist-packages", "pyspark.zip", "/pyspark/", "<", "lib/python3", _SSKAFKA)
_CAUSE = re.compile(r"^\s*(?:Caused by: )?((?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)): (.+)$")
_WRAPPERS = ("PySpark", "StreamingQueryException", "SparkException", "PythonException", "AnalysisException")
_NOISE = re.compile(r"\s*SQLSTATE: \w+(;.*)?\s*$")
_PREFIX = re.compile(
    r"^(\[STREAM_FAILED\] Query \[.*?\] terminated with exception: )?"
    r"(Job aborted due to stage failure: .*?most recent failure: Lost task .*?: ([\w$]+\.)+[A-Z]\w*: )?"
)
_NAMED = ("KeyError", "BrokenPipeError", "ConnectionResetError", "ConnectionAbortedError")
"""Errors of Python whose message says too little without their name."""
_NO_MESSAGE = "(no cause message)"
_LOST = re.compile(
    r"Python worker exited unexpectedly.*|java\.io\.EOFException"
    r"|(\w+: \[Errno \d+\] )?(Broken pipe|Connection reset( by peer)?|(Stream|Socket)( is)? closed)"
)
_OF_SOCKETS = {"", "java.io.IOException", "java.net.SocketException", "org.apache.spark.SparkException", *_NAMED}
"""Errors that Spark passes on as a socket to a Python process has raised them; "" has no class in the text."""
_OF_BROKERS = re.compile(
    r"sskafka\.client\.errors\."
    r"(BrokerUnavailable|ConnectionLost|ConnectionRefusedByBroker|NobodyListens|RequestTimeout)Error"
)
AGAIN = "run the pipeline again: it continues at its checkpoint"
BROKERS = "`sskafka cluster status` shows which brokers are up"
SHORT_OF_MEMORY = "`dmesg` shows whether the kernel has killed it because memory was short"


class PipelineRunError(Exception):
    """A pipeline cannot run, or has ended with an error; `hint` says what to do, or where to read more."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        log = written_log()
        self.hint = hint or (f"Spark's log {log} has the details" if log else "")


def failure_text(error: Exception) -> str:
    """Return the sentence that explains why a run has failed."""
    return str(error) if isinstance(error, PipelineRunError) else explained(error)


def run_error(error: BaseException, where: str = "") -> PipelineRunError:
    """Return the error of a run that has failed because of `error`; `where` precedes the sentence."""
    return PipelineRunError(f"{where}{explained(error)}", _next_step(error))


def _next_step(error: BaseException) -> str:
    """Return what to do after a failure from outside; empty if the sentence or Spark's log says it."""
    if has_lost_process(error):
        return f"{AGAIN}; {SHORT_OF_MEMORY}"
    kind, _ = _cause(error)
    return f"{AGAIN}; {BROKERS}" if _OF_BROKERS.fullmatch(kind) else ""


def has_lost_process(error: BaseException) -> bool:
    """Return whether Java has lost the connection to one of its Python processes, which was killed or has crashed.

    Spark reports only what the socket reported. Connections to other systems belong to libraries, with errors of their
    own, or to functions of the user, with a position in the user's code."""
    kind, sentence = _cause(error)
    if kind not in _OF_SOCKETS or _LOST.fullmatch(sentence) is None:
        return False
    return kind not in _NAMED or not user_code_position(str(error))


def explained(error: BaseException) -> str:
    """Return the innermost cause that the text of an error names, with its position if that is in the user's code."""
    kind, sentence = _cause(error)
    if has_lost_process(error):
        reason = sentence.partition(". ")[0]
        return f"a Python process of Spark was killed or has crashed ({reason})"
    position = "" if kind.startswith("sskafka.") else user_code_position(str(error))
    return f"{sentence} ({position})" if position and position not in sentence else sentence


def raised_in_user_code(error: Exception) -> str:
    """Return the error with its position in the user's code, for code that this process has called."""
    position = user_code_position("".join(traceback.format_tb(error.__traceback__)))
    return f"{position}: {type(error).__name__}: {error}" if position else f"{type(error).__name__}: {error}"


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
        sentence = _PREFIX.sub("", _NOISE.sub("", first))
        return "", _class_of_cause(error) if sentence.endswith(_NO_MESSAGE) else sentence
    kind, message = chosen[-1].groups()
    return kind, _NOISE.sub("", f"{kind}: {message}" if kind in _NAMED else message)


def _class_of_cause(error: BaseException) -> str:
    """Return the Java class of an exception without a message, which pyspark keeps beside the text."""
    known = getattr(getattr(error, "_cause", None), "_desc", "")
    return str(known or "Spark names no reason")
