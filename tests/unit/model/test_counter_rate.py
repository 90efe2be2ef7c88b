from sskafka.model.counter_rate import CounterRate


def test_the_rate_of_the_last_minute() -> None:
    rate = CounterRate(now_ms=0)
    assert rate.per_second(0, 0) == 0
    assert rate.per_second(50, 10_000) == 5
    for second in range(11, 120):
        rate.per_second(50, second * 1000)
    assert rate.per_second(50, 120_000) == 0, "the growth is more than a minute ago"
    assert rate.growth(80, 130_000) == 30


def test_readings_within_a_second_share_one() -> None:
    rate = CounterRate(now_ms=0, count=100)
    for step in range(1000):
        rate.per_second(100 + step, step / 10)
    assert rate.per_second(200, 1000) == 100
