"""Topic settings as logs use them."""

import pytest
from logs import append, reopen
from simulated_disk import SimulatedDisk

from sskafka.storage.log_config import LogConfig


@pytest.mark.parametrize(("setting", "used"), [(0, 0), ("4096", 4096), (100_000, 65_536), ("2147483647", 65_536)])
def test_the_interval_of_indexes_is_bounded(setting: int | str, used: int) -> None:
    assert LogConfig.from_settings({"index.interval.bytes": setting}).index_interval_bytes == used


def test_a_topic_with_a_huge_interval_has_index_entries() -> None:
    log = reopen(SimulatedDisk(), LogConfig.from_settings({"index.interval.bytes": 2**31 - 1}))
    for _ in range(7):
        append(log, b"x" * 20_000)
    assert log.segments.active.offset_index.count == 1
