"""`quorum-state`: the epoch, leader and vote of a voter, which it must keep so that it does not vote twice.

kraft.version 0   {"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,
                   "currentVoters":[{"voterId":1}],"data_version":0}
kraft.version 1   {"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",
                   "data_version":1}

The file is replaced atomically and is durable before any message that depends on it is sent.
"""

import json
import os

from sskafka.model.ids import ZERO_UUID, Uuid, parse_uuid, uuid_text
from sskafka.model.values import value
from sskafka.storage.disk import Disk, read_file, replace_file
from sskafka.storage.errors import CorruptFileError

FILE_NAME = "quorum-state"
NOBODY = -1


@value
class QuorumState:
    leader_epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: Uuid = ZERO_UUID


def read_quorum_state(disk: Disk, directory: str) -> QuorumState | None:
    """Return the state, or None if this voter has never taken part in an election."""
    path = os.path.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    try:
        return _parse(json.loads(read_file(disk, path)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"{path} cannot be read: {error}; restore it from a copy") from error


def write_quorum_state(
    disk: Disk, directory: str, state: QuorumState, *, voters: list[int], kraft_version: int
) -> None:
    fields = _static_quorum(state, voters) if kraft_version == 0 else _dynamic_quorum(state)
    text = json.dumps(fields, separators=(",", ":"))
    replace_file(disk, os.path.join(directory, FILE_NAME), text.encode())


def _parse(fields: dict[str, object]) -> QuorumState:
    if fields["data_version"] not in {0, 1}:
        raise ValueError(f"data_version {fields['data_version']} is not known")
    voted_directory = fields.get("votedDirectoryId")
    return QuorumState(
        leader_epoch=int(str(fields["leaderEpoch"])),
        leader_id=int(str(fields["leaderId"])),
        voted_id=int(str(fields["votedId"])),
        voted_directory_id=parse_uuid(str(voted_directory)) if voted_directory else ZERO_UUID,
    )


def _static_quorum(state: QuorumState, voters: list[int]) -> dict[str, object]:
    return {
        "clusterId": "",
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in voters],
        "data_version": 0,
    }


def _dynamic_quorum(state: QuorumState) -> dict[str, object]:
    return {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": uuid_text(state.voted_directory_id),
        "data_version": 1,
    }
