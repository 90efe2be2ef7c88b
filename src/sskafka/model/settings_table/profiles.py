"""Sets of values that belong together."""

from types import MappingProxyType

FAST_FAILOVER = MappingProxyType(
    {
        "broker.heartbeat.interval.ms": "200",
        "broker.session.timeout.ms": "1000",
        "controller.quorum.election.timeout.ms": "250",
        "controller.quorum.election.backoff.max.ms": "100",
        "controller.quorum.fetch.timeout.ms": "500",
        "controller.quorum.request.timeout.ms": "500",
    }
)
"""A leader that pauses or is out of reach is replaced within 3 s instead of 10, also if it is the active controller."""
