"""Logs as text, or as one JSON object per line with keys that do not change.

Names that clients have chosen are in the messages. So a message is one line of printable characters: a line break in
the name of a group would let a client forge lines, an escape sequence would let it control the terminal.

time      UTC, ISO 8601, with milliseconds
level     DEBUG, INFO, WARNING, ERROR or CRITICAL
logger    the module that logs
message   the text
node_id   this node
process   `broker`, or `http` for its child process
thread    the thread that logs
error     the traceback, only if there is one
details   an object with facts, only if there are any
"""

import json
import logging
import sys
from time import gmtime, strftime
from typing import Any

TEXT, JSON = "text", "json"
BROKER, HTTP = "broker", "http"
DETAILS = "details"
"""The name of the argument `extra` of logging calls that has facts."""


class JsonFormatter(logging.Formatter):
    def __init__(self, node_id: int, process: str) -> None:
        super().__init__()
        self._node_id = node_id
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        second, ms = strftime("%Y-%m-%dT%H:%M:%S", gmtime(record.created)), int(record.created % 1 * 1000)
        line: dict[str, Any] = {
            "time": f"{second}.{ms:03}+00:00",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "node_id": self._node_id,
            "process": self._process,
            "thread": record.threadName,
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        if details := getattr(record, DETAILS, None):
            line[DETAILS] = details
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in `logging`
        if not record.message.isprintable():
            record.message = "".join(map(_shown, record.message))
        return super().formatMessage(record)


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def configure_logs(level: str, log_format: str, node_id: int = -1, process: str = BROKER, mark: str = "") -> None:
    """Log to stderr. A second call replaces the format of the first one.

    `mark` is added to each line of text, to tell the lines of this broker from those of others."""
    suffix = " (HTTP)" if process == HTTP else ""
    text = TextFormatter(f"%(asctime)s %(levelname)-7s{mark} %(name)s{suffix}: %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(node_id, process) if log_format == JSON else text)
    logging.basicConfig(level=level, handlers=[handler], force=True)
