"""Logs as text, or as a JSON object a line with keys that do not change.

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
from datetime import UTC, datetime
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
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
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


def configure_logs(level: str, log_format: str, node_id: int = -1, process: str = BROKER, mark: str = "") -> None:
    """Log to stderr. A second call replaces the format of the first one.

    `mark`: what tells this broker's lines of text from those of others."""
    suffix = " (HTTP)" if process == HTTP else ""
    text = logging.Formatter(f"%(asctime)s %(levelname)-7s{mark} %(name)s{suffix}: %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(node_id, process) if log_format == JSON else text)
    logging.basicConfig(level=level, handlers=[handler], force=True)
