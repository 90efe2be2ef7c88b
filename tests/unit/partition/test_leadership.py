import pytest

from sskafka.partition.leadership import Leadership


@pytest.mark.parametrize(
    ("isr", "min_insync", "enough"),
    [((1, 2, 3), 2, True), ((1,), 2, False), ((1, 2), 3, False), ((1, 2, 3), 5, True)],
)
def test_min_insync_counts_at_most_the_replicas_there_are(isr: tuple[int, ...], min_insync: int, enough: bool) -> None:
    leadership = Leadership(leader_id=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=isr)
    assert leadership.has_enough_in_sync(min_insync) is enough
