"""Where two logs part: by leader epochs, never by the high watermark (KIP-101, KIP-279).

The follower tells the epoch of its last record and the offset it wants. The leader knows where that epoch ended in
its own log; if that is before the follower's offset, or if the leader never had the epoch, the logs have parted, and
it answers with its largest epoch not above the asked one and where that ended.

    leader     epoch 3: 0..49    epoch 5: 50..       asked (4, 80) -> diverging (3, 50)
    follower   epoch 3: 0..39    epoch 4: 40..79     its epoch 3 ended at 40 -> cut at min(40, 50)

A follower that does not have the leader's epoch itself cuts its own later epochs and asks again: after at most as
many steps as it has epochs, the last epoch is one that both have.
"""

from typing import NamedTuple

UNDEFINED = -1


class EpochEnd(NamedTuple):
    epoch: int
    end_offset: int


def diverging_epoch(asked_epoch: int, fetch_offset: int, known: EpochEnd) -> EpochEnd | None:
    """`known`: the leader's largest epoch not above the asked one, and its end; None when the logs agree so far."""
    if known.epoch < asked_epoch or known.end_offset < fetch_offset:
        return known
    return None


def plan_truncation(leader: EpochEnd, own: EpochEnd, log_end_offset: int) -> int:
    """Where the follower cuts. `own`: its own largest epoch not above the leader's, and its end."""
    if own.epoch == UNDEFINED:
        return min(leader.end_offset, log_end_offset)
    if own.epoch != leader.epoch:
        return min(own.end_offset, log_end_offset)
    return min(own.end_offset, leader.end_offset, log_end_offset)
