"""Warnings about certificates that expire soon. A client that meets an expired one does not say so to the node."""

import logging
import ssl
from datetime import UTC, datetime

from sskafka.runtime.tls.contexts import ReloadingContext
from sskafka.runtime.tls.replacement import own_certificate

_log = logging.getLogger(__name__)

DAY_S = 24 * 60 * 60
WARNING_DAYS = 30


class ExpiryWarnings:
    """Examines the certificate of each listener when it is new, and then once a day."""

    def __init__(self) -> None:
        self._examined: dict[str, tuple[ssl.SSLContext, float]] = {}

    def maybe_warn(self, listener: str, source: ReloadingContext, now_s: float) -> None:
        """Log a warning if the certificate has expired or expires soon. This blocks: call it in a thread."""
        context, examined_s = self._examined.get(listener, (None, 0.0))
        if context is source.context and now_s < examined_s + DAY_S:
            return
        self._examined[listener] = (source.context, now_s)
        expires_s = ssl.cert_time_to_seconds(own_certificate(source.contents)["notAfter"])
        date = datetime.fromtimestamp(expires_s, UTC).date()
        if expires_s <= now_s:
            _log.error("the certificate of listener %s has expired on %s", listener, date)
        elif expires_s <= now_s + WARNING_DAYS * DAY_S:
            _log.warning("the certificate of listener %s expires on %s", listener, date)
