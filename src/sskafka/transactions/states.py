"""The states of a transactional id, as `__transaction_state` numbers them, and the ways between them.

    state            may become                          when
    ---------------  ----------------------------------  ----------------------------------------------------------
    EMPTY            EMPTY                               the producer is initialized again
                     ONGOING                             partitions are added
                     PREPARE_ABORT                       an abort without partitions (second version: bumps the epoch)
                     DEAD                                nobody used the id for transactional.id.expiration.ms
    ONGOING          ONGOING                             more partitions are added
                     PREPARE_COMMIT, PREPARE_ABORT       EndTxn; abort also by timeout and by a newer producer
    PREPARE_COMMIT   COMPLETE_COMMIT                     every partition has the marker
    PREPARE_ABORT    COMPLETE_ABORT                      every partition has the marker
    COMPLETE_COMMIT  EMPTY, ONGOING, PREPARE_ABORT, DEAD as from EMPTY
    COMPLETE_ABORT   EMPTY, ONGOING, PREPARE_ABORT, DEAD as from EMPTY
    DEAD             nothing                             the id is forgotten; a tombstone says so in the log

A PREPARE state is a promise: from the moment it is committed the outcome can no longer change, whoever coordinates.
PREPARE_EPOCH_FENCE is Kafka's name for the moment between fencing a producer and aborting its transaction. Both are
one step here, so no transaction is ever in it; the number stays reserved.
"""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's spelling: PrepareCommit."""
        return self.name.title().replace("_", "")

    @property
    def is_preparing(self) -> bool:
        return self in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}

    @property
    def is_idle(self) -> bool:
        """No transaction is open and no marker is on its way."""
        return self in {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}


STATE_BY_LABEL: Mapping[str, TransactionState] = MappingProxyType({state.label: state for state in TransactionState})

_S = TransactionState
_FROM_IDLE = frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD})

NEXT_STATES: Mapping[TransactionState, frozenset[TransactionState]] = MappingProxyType(
    {
        _S.EMPTY: _FROM_IDLE,
        _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
        _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
        _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
        _S.COMPLETE_COMMIT: _FROM_IDLE,
        _S.COMPLETE_ABORT: _FROM_IDLE,
        _S.DEAD: frozenset(),
        _S.PREPARE_EPOCH_FENCE: frozenset(),
    }
)
