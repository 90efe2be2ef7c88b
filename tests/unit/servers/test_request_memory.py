from sskafka.servers.kafka.request_memory import (
    PROGRESS_BYTES_MIN,
    RESERVE_BYTES,
    LargeRequest,
    RequestMemory,
)

MEGABYTE = 1 << 20


class Sender:
    def __init__(self) -> None:
        self.is_resumed = False
        self.refusal = ""

    def memory_available(self) -> None:
        self.is_resumed = True

    def drop(self, reason: str) -> None:
        self.refusal = reason


def begin(memory: RequestMemory, size: int, arrived: int = 0) -> tuple[LargeRequest, Sender]:
    sender = Sender()
    request = memory.begin(size, memoryview(b"abcd"), sender)
    memory.received(request, arrived)
    return request, sender


def test_the_buffer_of_a_request_is_used_again() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    first, _ = begin(memory, 100_000)
    assert bytes(first.content()[:4]) == b"abcd"
    memory.end(first)
    assert begin(memory, 120_000)[0].buffer is first.buffer


def test_giant_buffers_are_not_kept() -> None:
    memory = RequestMemory(100 * MEGABYTE)
    giant, _ = begin(memory, 20_000_000)
    memory.end(giant)
    assert begin(memory, 20_000_000)[0].buffer is not giant.buffer


def test_announced_bytes_do_not_count() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    requests = [begin(memory, 100 * MEGABYTE)[0] for _ in range(20)]
    assert memory.held_bytes == 80
    assert not any(memory.is_full_for(request) for request in requests)


def test_when_the_memory_is_full_only_the_oldest_goes_on() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    (first, _), (second, waiting) = begin(memory, 50 * MEGABYTE, 6_000_000), begin(memory, 50 * MEGABYTE, 6_000_000)
    assert not memory.is_full_for(first)
    assert memory.is_full_for(second)
    memory.end(first)
    assert waiting.is_resumed
    assert not memory.is_full_for(second)


def test_the_next_one_goes_on_though_the_memory_is_still_full() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    first, _ = begin(memory, 50 * MEGABYTE, 1)
    others = [begin(memory, 50 * MEGABYTE, 20 * MEGABYTE) for _ in range(2)]
    assert all(memory.is_full_for(request) for request, _ in others)
    memory.end(first)
    assert [sender.is_resumed for _, sender in others] == [True, False]


def test_small_requests_use_the_reserve() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    begin(memory, 50 * MEGABYTE, 20 * MEGABYTE)
    assert not memory.is_full_for(begin(memory, 200_000)[0])
    begin(memory, 50 * MEGABYTE, RESERVE_BYTES)
    assert memory.is_full_for(begin(memory, 200_000)[0])


def test_a_silent_request_is_closed() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    silent, sender = begin(memory, MEGABYTE)
    for _ in range(30):
        memory.close_stalled("L", 30)
    assert not sender.refusal
    memory.close_stalled("L", 30)
    assert "1048572 of 1048576 bytes are missing" in sender.refusal
    memory.end(silent)
    assert memory.held_bytes == 0


def test_a_request_that_waits_for_memory_is_not_silent() -> None:
    memory = RequestMemory(MEGABYTE)
    begin(memory, 50 * MEGABYTE, 2 * MEGABYTE)
    waiting, sender = begin(memory, 50 * MEGABYTE, 2 * MEGABYTE)
    assert memory.is_full_for(waiting)
    for _ in range(40):
        memory.close_stalled("L", 30)
    assert not sender.refusal


def test_listeners_that_share_the_memory_count_a_second_once() -> None:
    memory = RequestMemory(10 * MEGABYTE)
    _, sender = begin(memory, MEGABYTE)
    for _ in range(30):
        for listener in ("A", "B", "C"):
            memory.close_stalled(listener, 30)
    assert not sender.refusal
    memory.close_stalled("B", 30)
    assert sender.refusal


def test_when_others_wait_the_oldest_must_make_progress() -> None:
    memory = RequestMemory(MEGABYTE)
    oldest, sender = begin(memory, 50 * MEGABYTE, 2 * MEGABYTE)
    memory.close_stalled("L", 30)
    memory.received(oldest, PROGRESS_BYTES_MIN)
    memory.close_stalled("L", 30)
    assert not sender.refusal
    memory.received(oldest, 1)
    memory.close_stalled("L", 30)
    assert "too slowly" in sender.refusal
