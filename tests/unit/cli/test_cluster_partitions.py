import pytest
import typer

from sskafka.cli.cluster.partitions import _parse_move, _parse_partition
from sskafka.model.ids import TopicPartition


def test_moves() -> None:
    assert _parse_move("a:b:3=2,1") == (TopicPartition("a:b", 3), [2, 1])
    assert _parse_move("t:0=") == (TopicPartition("t", 0), None)


@pytest.mark.parametrize("text", ["t:0", "t=1,2", "t:x=1", ":0=1", "t:0=1,two"])
def test_what_is_no_move(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        _parse_move(text)


def test_partitions() -> None:
    assert _parse_partition("orders:12") == TopicPartition("orders", 12)
    with pytest.raises(typer.BadParameter):
        _parse_partition("orders")
