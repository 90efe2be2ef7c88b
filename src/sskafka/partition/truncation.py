"""Find where two logs diverge, by leader epochs and never by the high watermark (KIP-101, KIP-279).

A follower's fetch carries the epoch of its last record and its fetch offset. The leader knows where that epoch ended in
its own log. If this is before the fetch offset, or if the leader never had the epoch, the logs have diverged. The
leader then answers with its largest epoch that is not above the requested one, and with the end offset of that epoch.

    leader     epoch 3: 0..49    epoch 5: 50..       fetch (4, 80) -> diverging (3, 50)
    follower   epoch 3: 0..39    epoch 4: 40..79     its epoch 3 ended at 40 -> truncate to min(40, 50)

A follower that does not have the leader's epoch truncates its own later epochs and fetches again. After at most as many
steps as it has epochs, its last epoch is one that the leader has too.
"""

from sskafka.model.ids import EpochEnd

UNDEFINED = -1


def diverging_epoch(requested_epoch: int, fetch_offset: int, known: EpochEnd) -> EpochEnd | None:
    """Return `known` if the logs have diverged before `fetch_offset`, else None.

    `known` is the leader's largest epoch that is not above the requested one, and its end offset."""
    if known.epoch < requested_epoch or known.end_offset < fetch_offset:
        return known
    return None


def plan_truncation(leader: EpochEnd, own: EpochEnd, log_end_offset: int) -> int:
    """Return the offset to truncate to. `own` is the follower's largest epoch not above the leader's, and its end."""
    if own.epoch == UNDEFINED:
        return min(leader.end_offset, log_end_offset)
    if own.epoch != leader.epoch:
        return min(own.end_offset, log_end_offset)
    return min(own.end_offset, leader.end_offset, log_end_offset)
