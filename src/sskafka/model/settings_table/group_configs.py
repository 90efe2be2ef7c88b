"""The configs of single groups (config resource type 32). A group without a config uses the broker's setting.

The value of a group must be within the bounds that the broker sets; `BOUNDS` names the settings with these bounds.
"""

import re
from functools import partial
from typing import NamedTuple

from sskafka.model.setting import AtLeast, Fallback, Importance, OneOf, Setting, Type, Update, Value

INT, STRING, BOOLEAN = Type.INT, Type.STRING, Type.BOOLEAN
DYNAMIC, MEDIUM = Update.CLUSTER_WIDE, Importance.MEDIUM

_DURATION = re.compile(r"by_duration:P(?=.)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?", re.IGNORECASE)


share_group = partial(Setting, no_effect_because="share groups are not supported")
streams_group = partial(Setting, no_effect_because="streams groups are not supported")


class AutoOffsetResetStrategy:
    """earliest, latest, or a duration before now."""

    def allows(self, value: Value) -> bool:
        return isinstance(value, str) and (value in {"earliest", "latest"} or self._is_duration(value))

    @staticmethod
    def _is_duration(text: str) -> bool:
        return text.startswith("by_duration:") and _DURATION.fullmatch(text) is not None

    def kafka_refusal(self, value: Value) -> str:
        return "Invalid share.auto.offset.reset strategy"

    def __str__(self) -> str:
        return "earliest, latest or by_duration:PnDTnHnMn.nS"


class Bounds(NamedTuple):
    """Names of the broker settings that bound a group's value."""

    least: str | None
    most: str


def _follows(name: str) -> tuple[Fallback, ...]:
    return (Fallback(name),)


# fmt: off
GROUP_CONFIGS = (
    Setting("consumer.session.timeout.ms", INT, 45000, AtLeast(1), DYNAMIC, MEDIUM,
            "A consumer that sends no heartbeat for this long is removed from the group.",
            fallbacks=_follows("group.consumer.session.timeout.ms")),
    Setting("consumer.heartbeat.interval.ms", INT, 5000, AtLeast(1), DYNAMIC, MEDIUM,
            "Heartbeat interval of the members of a consumer group.",
            fallbacks=_follows("group.consumer.heartbeat.interval.ms")),
    Setting("consumer.assignment.interval.ms", INT, 1000, AtLeast(0), DYNAMIC, MEDIUM,
            "Minimum time between two target assignments of a consumer group.",
            fallbacks=_follows("group.consumer.assignment.interval.ms")),
    share_group("share.session.timeout.ms", INT, 45000, AtLeast(1), DYNAMIC, MEDIUM,
            "A member that sends no heartbeat for this long is removed from the share group.",
            fallbacks=_follows("group.share.session.timeout.ms")),
    share_group("share.heartbeat.interval.ms", INT, 5000, AtLeast(1), DYNAMIC, MEDIUM,
            "Heartbeat interval of the members of a share group.",
            fallbacks=_follows("group.share.heartbeat.interval.ms")),
    share_group("share.record.lock.duration.ms", INT, 30000, AtLeast(1000), DYNAMIC, MEDIUM,
            "How long a member of a share group holds the lock of a record that it acquired.",
            fallbacks=_follows("group.share.record.lock.duration.ms")),
    share_group("share.delivery.count.limit", INT, 5, AtLeast(2), DYNAMIC, MEDIUM,
            "Maximum number of deliveries of a record to a share group.",
            fallbacks=_follows("group.share.delivery.count.limit")),
    share_group("share.partition.max.record.locks", INT, 2000, AtLeast(100), DYNAMIC, MEDIUM,
            "Maximum number of records of a partition that a share group locks at the same time.",
            fallbacks=_follows("group.share.partition.max.record.locks")),
    share_group("share.assignment.interval.ms", INT, 1000, AtLeast(0), DYNAMIC, MEDIUM,
            "Minimum time between two target assignments of a share group.",
            fallbacks=_follows("group.share.assignment.interval.ms")),
    share_group("share.auto.offset.reset", STRING, "latest", AutoOffsetResetStrategy(), DYNAMIC, MEDIUM,
            "Offset from which a new share group reads a partition."),
    share_group("share.isolation.level", STRING, "read_uncommitted", OneOf(("read_committed", "read_uncommitted")),
            DYNAMIC, MEDIUM, "Whether a share group reads records of open and aborted transactions."),
    share_group("share.renew.acknowledge.enable", BOOLEAN, True, None, DYNAMIC, MEDIUM,
            "Whether members of a share group may renew the lock on a record."),
    streams_group("streams.session.timeout.ms", INT, 45000, AtLeast(1), DYNAMIC, MEDIUM,
            "A member that sends no heartbeat for this long is removed from the streams group.",
            fallbacks=_follows("group.streams.session.timeout.ms")),
    streams_group("streams.heartbeat.interval.ms", INT, 5000, AtLeast(1), DYNAMIC, MEDIUM,
            "Heartbeat interval of the members of a streams group.",
            fallbacks=_follows("group.streams.heartbeat.interval.ms")),
    streams_group("streams.num.standby.replicas", INT, 0, AtLeast(0), DYNAMIC, MEDIUM,
            "Number of standby replicas of each task of a streams group.",
            fallbacks=_follows("group.streams.num.standby.replicas")),
    streams_group("streams.initial.rebalance.delay.ms", INT, 3000, AtLeast(0), DYNAMIC, MEDIUM,
            "How long a new streams group waits for further members before its first assignment.",
            fallbacks=_follows("group.streams.initial.rebalance.delay.ms")),
    streams_group("streams.assignment.interval.ms", INT, 1000, AtLeast(0), DYNAMIC, MEDIUM,
            "Minimum time between two target assignments of a streams group.",
            fallbacks=_follows("group.streams.assignment.interval.ms")),
)
# fmt: on

BOUNDS = {
    f"{kind}.{name}": Bounds(f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
    for kind, names in {
        "consumer": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
        "share": (
            "heartbeat.interval.ms",
            "session.timeout.ms",
            "record.lock.duration.ms",
            "delivery.count.limit",
            "partition.max.record.locks",
            "assignment.interval.ms",
        ),
        "streams": ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"),
    }.items()
    for name in names
} | {"streams.num.standby.replicas": Bounds(None, "group.streams.max.standby.replicas")}
