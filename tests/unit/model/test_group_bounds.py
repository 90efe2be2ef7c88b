"""Settings of groups that a broker does not start with, as Apache Kafka does not."""

import pytest

from sskafka.groups.group_settings import GroupSettings
from sskafka.model.dynamic_configs import validate_against_current
from sskafka.model.setting import SettingError
from sskafka.model.settings import Settings


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"group.consumer.session.timeout.ms": "44999"},
            "group.consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"group.consumer.session.timeout.ms": "60001"},
            "group.consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {"group.consumer.max.heartbeat.interval.ms": "4999"},
            (
                "group.consumer.max.heartbeat.interval.ms must be greater than or equal to "
                "group.consumer.min.heartbeat.interval.ms"
            ),
        ),
        (
            {"group.consumer.assignment.interval.ms": "15001"},
            (
                "group.consumer.assignment.interval.ms must be less than or equal to "
                "group.consumer.max.assignment.interval.ms"
            ),
        ),
        (
            {"group.consumer.session.timeout.ms": "5000", "group.consumer.min.session.timeout.ms": "5000"},
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
    ],
)
def test_defaults_of_groups_lie_within_their_bounds(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError) as refused:
        Settings.resolve(given)
    assert refused.value.key == sentence.partition(" ")[0]
    assert refused.value.problem == sentence.partition(" ")[2]


def test_the_assignment_interval_stays_within_its_bounds_while_the_broker_runs() -> None:
    settings = Settings.resolve()
    changed = {"group.consumer.assignment.interval.ms": "20000"}
    with pytest.raises(SettingError) as refused:
        validate_against_current(changed, settings, settings.with_dynamic(changed, {}))
    assert refused.value.kafka_text == (
        "group.consumer.assignment.interval.ms must be less than or equal to group.consumer.max.assignment.interval.ms"
    )
    lowered = {"group.consumer.assignment.interval.ms": "500"}
    validate_against_current(changed, settings, settings.with_dynamic(lowered, changed))  # this broker's own counts


@pytest.mark.parametrize("protocols", ["consumer", "classic,share", "classic,magic"])
def test_kinds_of_groups_that_cannot_be_served(protocols: str) -> None:
    with pytest.raises(SettingError, match=r"group\.coordinator\.rebalance\.protocols"):
        Settings.resolve({"group.coordinator.rebalance.protocols": protocols})


@pytest.mark.parametrize("assignors", ["", "best", "uniform,uniform", "range,com.example.Own"])
def test_assignors_that_cannot_be_loaded(assignors: str) -> None:
    with pytest.raises(SettingError, match=r"group\.consumer\.assignors"):
        Settings.resolve({"group.consumer.assignors": assignors})


def test_assignors_and_policies_are_spelled_as_in_kafka() -> None:
    settings = GroupSettings.of(
        Settings.resolve(
            {
                "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform",
                "group.consumer.migration.policy": "UPGRADE",
            }
        )
    )
    assert settings.assignors == ("range", "uniform")
    assert settings.migration_policy == "upgrade"
