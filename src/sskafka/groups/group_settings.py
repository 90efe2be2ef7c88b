"""The settings of groups, read once."""

from collections.abc import Mapping
from typing import NamedTuple

from sskafka.model.group_configs import effective_int
from sskafka.model.settings import Settings
from sskafka.model.settings_table.coordination import ASSIGNOR_CLASSES

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait in a rebalance. It cannot heartbeat before it knows its id."""


class ConsumerTimings(NamedTuple):
    """The settings that a consumer group can override (config resource type 32)."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    """Shortest time between two target assignments; 0: assign after every change."""

    @classmethod
    def of(cls, settings: Settings, overrides: Mapping[str, str]) -> "ConsumerTimings":
        return cls(
            effective_int("consumer.session.timeout.ms", overrides, settings),
            effective_int("consumer.heartbeat.interval.ms", overrides, settings),
            effective_int("consumer.assignment.interval.ms", overrides, settings),
        )


class GroupSettings(NamedTuple):
    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    group_size_max: int = 2**31 - 1
    offset_metadata_bytes_max: int = 4096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    retention_check_interval_ms: int = 600_000
    consumer_timings: ConsumerTimings = ConsumerTimings()
    """The timings of groups without overrides."""
    consumer_group_size_max: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """The names of assignors. The first is the default."""
    migration_policy: str = "bidirectional"

    @classmethod
    def of(cls, settings: Settings) -> "GroupSettings":
        return cls(
            session_timeout_min_ms=settings["group.min.session.timeout.ms"],
            session_timeout_max_ms=settings["group.max.session.timeout.ms"],
            initial_rebalance_delay_ms=settings["group.initial.rebalance.delay.ms"],
            group_size_max=settings["group.max.size"],
            offset_metadata_bytes_max=settings["offset.metadata.max.bytes"],
            offsets_retention_ms=settings["offsets.retention.minutes"] * 60_000,
            retention_check_interval_ms=settings["offsets.retention.check.interval.ms"],
            consumer_timings=ConsumerTimings.of(settings, {}),
            consumer_group_size_max=settings["group.consumer.max.size"],
            assignors=tuple(ASSIGNOR_CLASSES.get(name, name) for name in settings["group.consumer.assignors"]),
            migration_policy=settings["group.consumer.migration.policy"].lower(),
        )
