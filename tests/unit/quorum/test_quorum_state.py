from pathlib import Path

import pytest

from sskafka.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import CorruptFileError

WRITTEN_BY_KAFKA = Path(__file__).parents[2] / "support" / "written_by_kafka" / "__cluster_metadata-0"
DISK = OsDisk()


def test_kafkas_own_file_is_read_and_written_back_byte_for_byte(tmp_path: Path) -> None:
    state = read_quorum_state(DISK, str(WRITTEN_BY_KAFKA))
    assert state == QuorumState(leader_epoch=1, leader_id=1)
    assert state is not None
    write_quorum_state(DISK, str(tmp_path), state, voters=[1], kraft_version=0)
    assert (tmp_path / "quorum-state").read_bytes() == (WRITTEN_BY_KAFKA / "quorum-state").read_bytes()


def test_the_form_for_quorums_with_changing_members(tmp_path: Path) -> None:
    state = QuorumState(7, -1, 2, bytes(range(16)))
    write_quorum_state(DISK, str(tmp_path), state, voters=[1, 2], kraft_version=1)
    assert (tmp_path / "quorum-state").read_text() == (
        '{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"AAECAwQFBgcICQoLDA0ODw","data_version":1}'
    )
    assert read_quorum_state(DISK, str(tmp_path)) == state


def test_a_voter_that_never_voted_has_no_file(tmp_path: Path) -> None:
    assert read_quorum_state(DISK, str(tmp_path)) is None


def test_every_cut_of_the_file_is_refused(tmp_path: Path) -> None:
    write_quorum_state(DISK, str(tmp_path), QuorumState(3, 1), voters=[1], kraft_version=0)
    whole = (tmp_path / "quorum-state").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "quorum-state").write_bytes(whole[:length])
        with pytest.raises(CorruptFileError):
            read_quorum_state(DISK, str(tmp_path))


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}')
    with pytest.raises(CorruptFileError, match="data_version 2"):
        read_quorum_state(DISK, str(tmp_path))
