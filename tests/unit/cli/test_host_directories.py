from pathlib import Path

import pytest

from sskafka.cli.failures import CommandError
from sskafka.cli.host.directories import check_none_left_out


def broker_directory(root: Path, broker_id: int, *names: str) -> None:
    for name in ("__cluster_metadata-0", *names):
        (root / "brokers" / str(broker_id) / name).mkdir(parents=True)


def test_nothing_to_leave_out(tmp_path: Path) -> None:
    assert check_none_left_out([str(tmp_path), str(tmp_path / "missing")], [1]) == []


def test_brokers_that_are_started_are_not_left_out(tmp_path: Path) -> None:
    broker_directory(tmp_path, 1001, "orders-0")
    assert check_none_left_out([str(tmp_path)], [1, 1001]) == []


def test_an_empty_broker_may_be_left_out(tmp_path: Path) -> None:
    broker_directory(tmp_path, 1001)
    assert check_none_left_out([str(tmp_path)], [1]) == [1001]


def test_a_broker_with_partitions_may_not(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    broker_directory(first, 1001, "orders-0")
    broker_directory(second, 1001, "orders-1", "orders-2.0123456789abcdef0123456789abcdef-delete")
    with pytest.raises(CommandError, match=r"broker 1001 .* holds 2 partitions .* one broker per host") as refused:
        check_none_left_out([str(first), str(second)], [1])
    assert "--brokers-per-host 2" in refused.value.hint
    assert "sskafka broker decommission 1001 --wait 0" in refused.value.hint
