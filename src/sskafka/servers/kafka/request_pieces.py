"""Handle a request that lists many things piece by piece, and put the responses of the pieces together.

    OffsetFetch of 3 groups -> g1 with topics 1-40 | g1 with topics 41-55, g2 | g3 -> one response

A handler sees a piece as a request of its own: same fields, shorter lists. A piece takes about a millisecond. This is
only for APIs whose answer for one element does not depend on the other elements of the request. The results of finished
pieces are kept encoded, because objects take many times the memory, and their total size is bounded. An element that a
request repeats is answered each time, as by Apache Kafka.
"""

import copy
from collections.abc import Callable, Generator, Iterator, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.fair_turns import SLICE_NS
from sskafka.wire.apis import ApiKey
from sskafka.wire.codec import encode_element
from sskafka.wire.errors import MalformedMessageError

if TYPE_CHECKING:
    import asyncio

RESPONSE_BYTES_MAX = 64 * 1024 * 1024
FIRST_PIECE = 16
"""Elements of the first piece. Later pieces are larger or smaller, depending on the time that this one took, unless a
single element may take as long as a turn."""
PIECE_MAX = 4096

Path: TypeAlias = tuple[str, ...]
Call: TypeAlias = "Callable[[Any], Generator[asyncio.Future[Any] | None, None, Any]]"
"""Handles one piece; returns the response message."""


class Pieces(NamedTuple):
    """How a request is split: names of its lists, from the outermost inwards, and those of the response."""

    requested: Path
    answered: Path
    long_from: int = FIRST_PIECE
    """Requests with more elements are split."""
    null_is_all: bool = False
    """Whether a list, or the first list in one of its elements, may be null, which means everything there is."""
    piece_max: int = PIECE_MAX

    def is_long(self, message: Any) -> bool:
        items = getattr(message, self.requested[0])
        if self.null_is_all and (items is None or any(getattr(item, self.requested[1]) is None for item in items)):
            return True
        return _weight(items, self.requested[1:], self.long_from) > self.long_from


def _one_by_one(requested: Path, answered: Path) -> Pieces:
    """Return how requests are split of which one element may be about thousands of members, partitions or producers."""
    return Pieces(requested, answered, long_from=len(requested), piece_max=1)


_BY_KEY = {
    ApiKey.LIST_OFFSETS: Pieces(("topics", "partitions"), ("topics", "partitions")),
    ApiKey.OFFSET_COMMIT: Pieces(("topics", "partitions"), ("topics", "partitions")),
    ApiKey.FIND_COORDINATOR: Pieces(("coordinator_keys",), ("coordinators",)),
    ApiKey.DESCRIBE_GROUPS: _one_by_one(("groups",), ("groups",)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Pieces(("topics", "partitions"), ("topics", "partitions")),
    ApiKey.WRITE_TXN_MARKERS: Pieces(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions")),
    ApiKey.TXN_OFFSET_COMMIT: Pieces(("topics", "partitions"), ("topics", "partitions")),
    ApiKey.DESCRIBE_CONFIGS: Pieces(("resources",), ("results",)),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Pieces(("dirs", "topics", "partitions"), ("results",)),
    ApiKey.DELETE_GROUPS: Pieces(("groups_names",), ("results",)),
    ApiKey.OFFSET_DELETE: Pieces(("topics", "partitions"), ("topics", "partitions")),
    ApiKey.DESCRIBE_PRODUCERS: _one_by_one(("topics", "partition_indexes"), ("topics", "partitions")),
    ApiKey.DESCRIBE_TRANSACTIONS: _one_by_one(("transactional_ids",), ("transaction_states",)),
}
_OFFSET_FETCH_GROUPS_FROM = 8
_OFFSET_FETCH = Pieces(("topics", "partition_indexes"), ("topics", "partitions"), null_is_all=True)
_OFFSET_FETCH_GROUPS = Pieces(
    ("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"), null_is_all=True
)


_LEAVING_MEMBERS_FROM = 3
_LEAVING_MEMBERS = Pieces(("members",), ("members",), long_from=300)
"""Each piece begins a rebalance. Nearly always one is enough."""

_TRANSACTIONS_FROM = 4
_TRANSACTIONS = Pieces(("transactions",), ("results_by_transaction",))


def pieces_of(key: int, version: int) -> Pieces | None:
    """Return how requests of an API are split; None if they are not."""
    if key == ApiKey.ADD_PARTITIONS_TO_TXN:
        return _TRANSACTIONS if version >= _TRANSACTIONS_FROM else None
    if key == ApiKey.LEAVE_GROUP:
        return _LEAVING_MEMBERS if version >= _LEAVING_MEMBERS_FROM else None
    if key == ApiKey.OFFSET_FETCH:
        return _OFFSET_FETCH_GROUPS if version >= _OFFSET_FETCH_GROUPS_FROM else _OFFSET_FETCH
    return _BY_KEY.get(ApiKey(key))


def handle_in_pieces(
    message: Any, version: int, pieces: Pieces, call: Call
) -> "Generator[asyncio.Future[Any] | None, None, Any]":
    """Yield between pieces; return the response message, with encoded elements."""
    name = pieces.requested[0]
    response: Any = None
    size = _PieceSize(pieces.piece_max)
    response_bytes = 0
    is_flexible = type(message).SCHEMA.is_flexible(version)

    def encoder(element: Any) -> bytes:
        return encode_element(element, version, is_flexible)

    everything = getattr(message, name)
    split = [(None, 0)] if everything is None else _split(everything, pieces.requested[1:], size)
    for items, depth in split:
        piece = copy.copy(message)
        setattr(piece, name, items)
        began_ns = perf_counter_ns()
        answer = yield from call(piece)
        size.took(perf_counter_ns() - began_ns)
        if response is None:
            response = answer
        else:
            _keep_error(response, answer)
            _merge(getattr(response, pieces.answered[0]), getattr(answer, pieces.answered[0]), pieces.answered, depth)
        response_bytes += _encode_finished(getattr(response, pieces.answered[0]), pieces.answered[1:], encoder)
        if response_bytes > RESPONSE_BYTES_MAX:
            raise MalformedMessageError(f"the response would have more than {RESPONSE_BYTES_MAX} bytes")
        yield None
    assert response is not None, "only long requests are split"
    return response


class _PieceSize:
    def __init__(self, elements_max: int) -> None:
        self.elements = min(FIRST_PIECE, elements_max)
        self._max = elements_max

    def took(self, elapsed_ns: int) -> None:
        if elapsed_ns > SLICE_NS:
            self.elements = max(1, self.elements // 2)
        elif elapsed_ns < SLICE_NS // 4:
            self.elements = min(self._max, self.elements * 2)


def _split(items: Sequence[Any], path: Path, size: _PieceSize) -> Iterator[tuple[list[Any], int]]:
    """Yield pieces of a list, each with the number of levels on which it continues the element before it."""
    piece: list[Any] = []
    weight = 0
    for item in items:
        heft = 1 + (_weight(getattr(item, path[0]), path[1:], size.elements) if path else 0)
        if piece and weight + heft > size.elements:
            yield piece, 0
            piece, weight = [], 0
        if heft > size.elements and path:
            continues = False
            for part, depth in _split(getattr(item, path[0]), path[1:], size):
                whole = copy.copy(item)
                setattr(whole, path[0], part)
                yield [whole], depth + 1 if continues else 0
                continues = True
        else:
            piece.append(item)
            weight += heft
    if piece:
        yield piece, 0


def _weight(items: Sequence[Any] | None, path: Path, enough: int) -> int:
    """Return the number of elements of a list and of the lists in them. Stop counting above `enough`."""
    if items is None:
        return 0
    weight = len(items)
    if path and weight <= enough:
        for item in items:
            weight += _weight(getattr(item, path[0]), path[1:], enough)
    return weight


def _merge(into: list[Any], more: list[Any], path: Path, depth: int) -> None:
    if depth and into and more and len(path) > 1:
        first = more[0]
        _keep_error(into[-1], first)
        _merge(getattr(into[-1], path[1]), getattr(first, path[1]), path[1:], depth - 1)
        more = more[1:]
    into.extend(more)


def _keep_error(into: Any, other: Any) -> None:
    if getattr(other, "error_code", ErrorCode.NONE):
        into.error_code = other.error_code


def _encode_finished(results: Any, path: Path, encoder: Callable[[Any], bytes]) -> int:
    """Encode the elements that will not change any more: all but the last, in every list. Return their size."""
    if type(results) is not list or not results:
        return 0
    size = 0
    for index in range(len(results) - 2, -1, -1):
        element = results[index]
        if type(element) is bytes:
            break
        results[index] = encoder(element)
        size += len(results[index]) - _encoded_size(element, path)
    if path:
        size += _encode_finished(getattr(results[-1], path[0]), path[1:], encoder)
    return size


def _encoded_size(element: Any, path: Path) -> int:
    """Return the size of what was encoded when the element was not finished yet."""
    results = getattr(element, path[0]) if path else None
    if type(results) is not list or not results:
        return 0
    finished = results[:-1] if type(results[0]) is bytes else []
    return sum(map(len, finished)) + _encoded_size(results[-1], path[1:])
