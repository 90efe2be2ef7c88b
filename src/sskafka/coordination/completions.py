"""Completions of coordinator operations: the answer and the effects of a decision, once it is committed or has failed.

`FutureCompletion` can be awaited; `NO_REQUESTER` is for operations that have no requester.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sskafka.model.coordination import PARKED, CallbackCompletion, Completion, CoordinatorResult, Respond
from sskafka.model.errors import ErrorCode, KafkaError
from sskafka.replication.errors import NotEnoughReplicasError
from sskafka.runtime.delayed_operation import DelayedOperation
from sskafka.storage.errors import InvalidProducerEpochError, TransactionCoordinatorFencedError


class FutureCompletion:
    __slots__ = ("future",)

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def answer(self, response: Any) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def refuse(self, error: ErrorCode, message: str = "") -> None:
        """Raise the error where the answer is awaited."""
        if not self.future.done():
            self.future.set_exception(KafkaError(error, message))


NO_REQUESTER = CallbackCompletion(lambda _: None, lambda *_: None)


def effects_of(decision: CoordinatorResult[Any, Any], completion: Completion) -> Sequence[object]:
    """Return the effects of the decision, with the answer first."""
    if decision.answer is PARKED:
        return decision.effects
    return [Respond(completion, decision.answer), *decision.effects]


def refuse(effects: Iterable[object], error: ErrorCode) -> None:
    """Drop the effects, and pass the error to every requester that waits for one of them."""
    for effect in effects:
        if isinstance(effect, Respond):
            effect.completion.refuse(error)


class DelayedEffects(DelayedOperation):
    """Effects that wait for the high watermark, which does not move while too few replicas are in sync."""

    __slots__ = ("_complete", "_effects")

    def __init__(self, effects: Sequence[object], complete: Callable[[Sequence[object]], None]) -> None:
        self._effects = effects
        self._complete = complete

    def complete(self, outcomes: list[ErrorCode]) -> None:
        match outcomes[0]:
            case ErrorCode.NONE:
                self._complete(self._effects)
            case ErrorCode.REQUEST_TIMED_OUT:
                refuse(self._effects, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            case _:
                refuse(self._effects, ErrorCode.NOT_COORDINATOR)


def refusal_of(error: BaseException) -> ErrorCode:
    """Return the error code for requesters whose append failed."""
    match error:
        case KafkaError():
            return error.code
        case NotEnoughReplicasError():
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case InvalidProducerEpochError():
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case TransactionCoordinatorFencedError():
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        case _:
            return ErrorCode.NOT_COORDINATOR
