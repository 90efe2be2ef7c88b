"""Logins of HTTP clients: the broker checks them, the HTTP process runs them over the private socket.

login_step       {"mechanism", "exchange", "message"}   -> {"exchange", "answer", "principal"}, or {"error"}
login_failed     {"host", "user", "reason"}             -> null: a client could not log in; counted and logged
may_see_metrics  {"principal", "host"}                  -> whether the client may DESCRIBE the cluster
tls_options      {"known": number}                      -> those of the HTTP server (changing_options.py)

Messages are those of SASL, in base64. The mechanisms are those of Kafka's listeners, so that a change of users or
tokens takes effect for HTTP clients at the same time. `exchange` is 0 in the first message of a login.
"""

import itertools
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from sskafka.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from sskafka.model.counters import ConnectionCounters
from sskafka.model.listeners import HTTP_NAME
from sskafka.model.security.errors import SaslError
from sskafka.servers.adr.caller import http_caller
from sskafka.servers.kafka.authorization import Authorizer, FailedLoginRecorder
from sskafka.servers.kafka.closing_log import ClosingLog
from sskafka.servers.kafka.security.mechanisms import SaslExchange, SaslMechanism
from sskafka.servers.local.changing_options import ChangingOptions
from sskafka.servers.local.server import Answer

EXCHANGES_MAX = 1000
"""Logins that have begun and not ended; the oldest is forgotten when there are more."""


class LoginAnswers:
    def __init__(
        self,
        mechanisms: Mapping[str, SaslMechanism],
        authorizer: Authorizer,
        counters: ConnectionCounters,
        tls: ChangingOptions | None,
        on_failed_login: FailedLoginRecorder,
    ) -> None:
        self._on_failed_login = on_failed_login
        self._mechanisms = mechanisms
        self._authorizer = authorizer
        self._counters = counters
        self._log = ClosingLog()
        self._exchanges: dict[int, SaslExchange] = {}
        self._numbers = itertools.count(1)
        self._tls = tls

    def table(self) -> dict[str, Answer]:
        of_tls: dict[str, Answer] = {"tls_options": self._tls.newer} if self._tls is not None else {}
        return of_tls | {
            "login_step": self.login_step,
            "login_failed": self.login_failed,
            "may_see_metrics": self.may_see_metrics,
        }

    async def login_step(self, details: Mapping[str, Any]) -> dict[str, Any]:
        number = details["exchange"]
        exchange = self._exchanges.pop(number, None) if number else self._begin(details["mechanism"])
        if exchange is None:
            return {"error": "Authentication failed: there is no such login, or it took too long"}
        try:
            step = exchange.evaluate(b64decode(details["message"]))
        except SaslError as error:
            return {"error": str(error)}
        if step.expires_ms is not None and step.expires_ms <= time.time() * 1000:
            return {"error": "Authentication failed: the credential has expired"}
        if step.principal is None:
            number = self._keep(exchange)
        return {"exchange": number, "answer": b64encode(step.answer).decode(), "principal": step.principal}

    def _begin(self, mechanism: str) -> SaslExchange | None:
        found = self._mechanisms.get(mechanism)
        return None if found is None else found.begin()

    def _keep(self, exchange: SaslExchange) -> int:
        if len(self._exchanges) >= EXCHANGES_MAX:
            del self._exchanges[next(iter(self._exchanges))]
        number = next(self._numbers)
        self._exchanges[number] = exchange
        return number

    async def login_failed(self, details: Mapping[str, Any]) -> None:
        self._counters.failed_authentications += 1
        reason = f"HTTP authentication failed: {details['reason']}"
        self._log.log(HTTP_NAME, details["host"], reason, int(time.monotonic()))
        self._on_failed_login(HTTP_NAME, details["host"], details["user"], reason)

    async def may_see_metrics(self, details: Mapping[str, Any]) -> bool:
        caller = http_caller(details, "Metrics")
        return self._authorizer.allows(caller, AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
