from pathlib import Path

import pytest

from sskafka.cli.host.count import BROKERS_MAX, host_broker_count, usable_cores
from sskafka.cli.usage import UsageError


def test_a_number_is_taken_as_it_is() -> None:
    assert host_broker_count("3") == 3


def test_auto_is_at_least_one() -> None:
    assert 1 <= host_broker_count("auto") <= BROKERS_MAX


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "1.5", str(BROKERS_MAX + 1)])
def test_anything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="--brokers-per-host"):
        host_broker_count(text)


@pytest.mark.parametrize(("quota", "most"), [("50000 100000", 1), ("100000 100000", 1), ("max 100000", None)])
def test_a_container_may_allow_fewer_cores_than_the_machine_has(tmp_path: Path, quota: str, most: int | None) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota + "\n")
    unlimited = usable_cores(tmp_path / "no such file")
    assert usable_cores(file) == (unlimited if most is None else min(unlimited, most))
