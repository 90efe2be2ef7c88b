"""The authorizer of a broker with `authorizer.class.name`: decides by ACLs and logs what it denies.

The ACLs come from the metadata image. The data loop and the control loop have an `AclAuthorizer` each.
"""

import logging
from collections.abc import Callable
from typing import Protocol

from sskafka.metadata.acls.authorizer import StandardAuthorizer, parse_super_users
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage
from sskafka.model.acl import AclOperation, ResourceType
from sskafka.model.settings import Settings
from sskafka.servers.kafka.authorization import RequestContext

log = logging.getLogger(__name__)

DENIAL_LOGGED_EVERY_MS = 60_000
PRINCIPALS_KEPT_MAX = 10_000


class DecisionRecorder(Protocol):
    """Receives the decisions of the authorizer, for example to write them to the audit log."""

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        is_allowed: bool,
    ) -> None: ...


class AclAuthorizer:
    is_configured = True

    def __init__(
        self, settings: Settings, monotonic_ms: Callable[[], float], recorder: DecisionRecorder | None = None
    ) -> None:
        self._authorizer = StandardAuthorizer(
            parse_super_users(settings["super.users"]),
            allow_everyone_if_no_acl_found=settings["allow.everyone.if.no.acl.found"],
        )
        self._denials = DenialLog(monotonic_ms)
        self._recorder = recorder

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self._authorizer.apply(image.access_control)

    def allows(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        """Decide by the ACLs. Raises AuthorizerNotReadyError before the metadata is read, except for super users."""
        allowed = self._authorizer.allows(context.principal, context.host, operation, resource_type, name)
        if not allowed:
            self._denials.note(context, operation, resource_type, name)
        if self._recorder is not None:
            self._recorder.record(context, operation, resource_type, name, is_allowed=allowed)
        return allowed

    def would_allow(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        return self._authorizer.allows(context.principal, context.host, operation, resource_type, name)

    def allows_some(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        return self._authorizer.allows_some(context.principal, context.host, operation, resource_type)


class DenialLog:
    """Logs denials, at most one a minute for each principal; the next line tells how many it left out."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._logged_ms: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def note(self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
        principal, now_ms = context.principal, self._monotonic_ms()
        logged_ms = self._logged_ms.get(principal)
        if logged_ms is not None and now_ms - logged_ms < DENIAL_LOGGED_EVERY_MS:
            self._left_out[principal] = self._left_out.get(principal, 0) + 1
            return
        if len(self._logged_ms) >= PRINCIPALS_KEPT_MAX:
            self._logged_ms.clear()
            self._left_out.clear()
        self._logged_ms[principal] = now_ms
        left_out = self._left_out.pop(principal, 0)
        log.warning(
            "denied: %s from %s may not %s %s %s (%s on listener %s)%s",
            principal,
            context.host,
            operation.name,
            resource_type.name,
            name,
            context.api_name,
            context.client_listener,
            f"; {left_out} more denials since the last line about it" if left_out else "",
        )
