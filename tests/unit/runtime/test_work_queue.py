from collections.abc import Callable

from virtual_time import VirtualTime

from sskafka.runtime.work_queue import TURN_MS, WorkQueue


def make() -> tuple[VirtualTime, WorkQueue, list[str], Callable[[str, int], Callable[[], None]]]:
    time = VirtualTime()
    done: list[str] = []

    def work(name: str, takes_ms: int) -> Callable[[], None]:
        def do() -> None:
            time.elapsed_ms += takes_ms
            done.append(name)

        return do

    return time, WorkQueue(time, time.call_soon), done, work


def test_little_is_done_at_once() -> None:
    _, queue, done, work = make()
    for name in "abc":
        queue.put(name, work(name, 1))
    queue.run()
    assert done == ["a", "b", "c"]


def test_much_is_done_turn_by_turn() -> None:
    time, queue, done, work = make()
    for name in "abcd":
        queue.put(name, work(name, TURN_MS // 2 + 1))
    queue.run()
    assert done == ["a", "b"]
    queue.put("e", work("e", 1))
    queue.run()
    assert done == ["a", "b"], "earlier work goes first"
    finished: list[list[str]] = []
    queue.when_done(lambda: finished.append(list(done)))
    time.run_for(100)
    assert finished == [["a", "b", "c", "d", "e"]]


def test_newer_work_under_the_same_key_replaces_older() -> None:
    _, queue, done, work = make()
    queue.put("x", work("old", 1))
    queue.put("y", work("y", 1))
    queue.put("x", work("new", 1))
    queue.run()
    assert done == ["y", "new"]


def test_a_failure_does_not_lose_the_rest() -> None:
    time, queue, done, work = make()

    def fail() -> None:
        raise ZeroDivisionError

    queue.put("bad", fail)
    queue.put("good", work("good", 1))
    try:
        queue.run()
    except ZeroDivisionError:
        done.append("failed")
    time.run_for(1)
    assert done == ["failed", "good"]


def test_idle_is_done() -> None:
    _, queue, done, _ = make()
    queue.when_done(lambda: done.append("done"))
    assert done == ["done"]


def test_a_paused_queue_waits_for_as_many_resumes() -> None:
    time, queue, done, work = make()
    queue.put("a", work("a", TURN_MS))
    queue.put("b", work("b", 1))
    queue.run()
    queue.pause()  # b is scheduled already
    queue.pause()
    queue.when_done(lambda: done.append("done"))
    queue.put("c", work("c", 1))
    queue.run()
    time.run_for(100)
    queue.resume()
    assert done == ["a"]
    queue.resume()
    assert done == ["a", "b", "c", "done"]


def test_work_that_divides_itself_keeps_its_place() -> None:
    time, queue, done, work = make()
    queue.put("a", lambda: queue.put_first({"a1": work("a1", TURN_MS), "a2": work("a2", TURN_MS)}))
    queue.put("b", work("b", 1))
    queue.run()
    time.run_for(100)
    assert done == ["a1", "a2", "b"]
