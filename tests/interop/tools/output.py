"""What a tool prints, without what differs in every run: ids, times, ports, directories, measured numbers."""

import re

from tools.runner import Result

_LOG_LINE = re.compile(r"^(\[[^\]]*\] )?\[?[\w.-]*\]? ?(WARN|ERROR|INFO|DEBUG)\b.*$")
_STACK_LINE = re.compile(r"^\s+(at |\.\.\. \d+ more)|^Caused by: .*$|^\[kafka-.*$")
_REPLACED = (
    (re.compile(r"/[^\s,:\"]*?/(?:Apache-Kafka|SSKafka)/[^\s,:\"]*"), "PATH"),
    (re.compile(r"\b127\.0\.0\.1(:\d+)?"), "ADDRESS"),
    (re.compile(r"console-consumer-\d+"), "console-consumer-N"),
    # Sentences are for people; which error it is must agree.
    (re.compile(r"(Exception: )(?![\w.]*Exception).*"), r"\1..."),
    (re.compile(r"(Error while executing (?:topic|client metrics) command : ).*"), r"\1..."),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z0-9])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,:\d]*Z?"), "TIME"),
    (re.compile(r"\b\d{13}\b"), "MILLIS"),
    (re.compile(r"-?\d+\.\d+(E-?\d+)?"), "FRACTION"),
)
_NUMBER = re.compile(r"\d+")


def shape(result: Result, *, numbers: bool = False) -> list[str]:
    """The lines that can be compared, exit code first. `numbers` replaces every number."""
    lines = [f"exit code {result.exit}"]
    for text in (result.out, result.err):
        for line in text.splitlines():
            if _LOG_LINE.match(line) or _STACK_LINE.match(line):
                continue
            lines.append(_replaced(line, numbers))
    return lines


def _replaced(line: str, numbers: bool) -> str:
    for pattern, word in _REPLACED:
        line = pattern.sub(word, line)
    if numbers:
        line = _NUMBER.sub("N", line)
    return re.sub(r"\s+", " ", line).strip()
