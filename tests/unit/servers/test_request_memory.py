from sskafka.servers.kafka.request_memory import RequestMemory


def test_a_returned_buffer_is_lent_again() -> None:
    memory = RequestMemory(10_000_000)
    buffer = memory.borrow(100_000)
    assert buffer is not None
    assert len(buffer) >= 100_000
    memory.give_back(buffer)
    assert memory.borrow(120_000) is buffer


def test_more_than_the_limit_waits_until_something_comes_back() -> None:
    memory, retried = RequestMemory(1_000_000), []
    first = memory.borrow(900_000)
    assert first is not None
    assert memory.borrow(500_000) is None
    memory.wait(lambda: retried.append(memory.borrow(500_000) is not None))
    memory.give_back(first)
    assert retried == [True]


def test_a_request_larger_than_the_limit_is_admitted_alone() -> None:
    memory = RequestMemory(1000)
    large = memory.borrow(50_000_000)
    assert large is not None
    assert memory.borrow(1) is None
    memory.give_back(large)
    assert memory.lent_bytes == 0


def test_giant_buffers_are_not_kept() -> None:
    memory = RequestMemory(100_000_000)
    giant = memory.borrow(20_000_000)
    assert giant is not None
    memory.give_back(giant)
    assert memory.borrow(20_000_000) is not giant
