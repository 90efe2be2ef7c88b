"""Authorization of routes that the broker process answers itself: no Kafka request checks their callers."""

from starlette.requests import Request

from sskafka.servers.http.caller import caller_of
from sskafka.servers.http.context import HttpContext
from sskafka.servers.http.problems import FORBIDDEN, Problem


async def check_may_describe(context: HttpContext, request: Request, what: str) -> None:
    """Raise Problem unless the caller may DESCRIBE the cluster, or the HTTP server has no security protocol."""
    security, caller = context.configuration.security, caller_of(request)
    is_open = not security.has_tls and not security.mechanisms
    if not is_open and not await context.link.ask("may_see_metrics", **caller._asdict()):
        raise Problem(FORBIDDEN, f"{caller.principal} may not DESCRIBE the cluster, which {what} need")
