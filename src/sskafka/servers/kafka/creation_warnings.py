"""Warnings about topics that cannot be created. Clients request such topics again and again."""

import logging

log = logging.getLogger(__name__)

TOPICS_MAX = 1000
"""Bound on remembered names, because clients choose the names."""


class CreationWarnings:
    """Logs a warning for each topic and reason once; repetitions are logged at DEBUG."""

    def __init__(self) -> None:
        self._reasons: dict[str, str | None] = {}

    def failed(self, topic: str, reason: str | None) -> None:
        is_known = topic in self._reasons and self._reasons[topic] == reason
        log.log(logging.DEBUG if is_known else logging.WARNING, "topic %s could not be created: %s", topic, reason)
        if len(self._reasons) >= TOPICS_MAX:
            self._reasons.clear()
        self._reasons[topic] = reason

    def created(self, topic: str) -> None:
        self._reasons.pop(topic, None)
