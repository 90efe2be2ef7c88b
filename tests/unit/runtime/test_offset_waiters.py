from sskafka.model.errors import ErrorCode
from sskafka.runtime.delayed_operation import OffsetWaiters


def test_releases_exactly_those_whose_offset_is_reached_in_order() -> None:
    waiters, released = OffsetWaiters(), []
    for offset in (30, 10, 20, 10):
        waiters.add(offset, lambda outcome, offset=offset: released.append((offset, outcome)))
    waiters.release(20)
    assert released == [(10, ErrorCode.NONE), (10, ErrorCode.NONE), (20, ErrorCode.NONE)]
    assert waiters
    waiters.release(30)
    assert not waiters


def test_failing_releases_everybody_with_the_error() -> None:
    waiters, released = OffsetWaiters(), []
    waiters.add(5, released.append)
    waiters.add(50, released.append)
    waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert released == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert not waiters


def test_a_released_waiter_may_wait_again() -> None:
    waiters, released = OffsetWaiters(), []
    waiters.add(1, lambda _: waiters.add(9, released.append))
    waiters.release(5)
    assert released == []
    waiters.release(9)
    assert released == [ErrorCode.NONE]
