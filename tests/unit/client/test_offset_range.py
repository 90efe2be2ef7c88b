import pytest

from sskafka.client.offset_range import Anchor, Bound, OffsetRange, parse_offset_range

NOW = 1_700_000_000_000
START, END = Bound(Anchor.START), Bound(Anchor.END)
DAY_2024_05_01 = 1_714_521_600_000


def time(ms: int) -> Bound:
    return Bound(Anchor.TIME, ms)


@pytest.mark.parametrize(
    ("text", "start", "stop"),
    [
        ("start", START, None),
        ("earliest", START, None),
        ("end", END, None),
        ("42", Bound(Anchor.OFFSET, 42), None),
        ("+3", Bound(Anchor.AFTER_START, 3), None),
        ("-3", Bound(Anchor.BEFORE_END, 3), None),
        ("5:10", Bound(Anchor.OFFSET, 5), Bound(Anchor.OFFSET, 10)),
        (":end", START, END),
        ("-5:end", Bound(Anchor.BEFORE_END, 5), END),
        ("7:", Bound(Anchor.OFFSET, 7), None),
        ("@1714521600000", time(DAY_2024_05_01), None),
        ("@1714521600", time(DAY_2024_05_01), None),
        ("@2024-05-01", time(DAY_2024_05_01), None),
        ("@2024-05-01T02:00:00+02:00", time(DAY_2024_05_01), None),
        ("@2024-05-01:2024-05-02", time(DAY_2024_05_01), time(DAY_2024_05_01 + 86_400_000)),
        ("@2024-05-01T00:00:00Z:2024-05-01T00:00:01Z", time(DAY_2024_05_01), time(DAY_2024_05_01 + 1000)),
        ("@2024-05-01T00:00:@1714521601000", time(DAY_2024_05_01), time(DAY_2024_05_01 + 1000)),
        ("@-15m", time(NOW - 900_000), None),
        ("@-2h:-30s", time(NOW - 7_200_000), time(NOW - 30_000)),
        ("@-1d:end", time(NOW - 86_400_000), END),
        ("3:@-1h", Bound(Anchor.OFFSET, 3), time(NOW - 3_600_000)),
    ],
)
def test_forms(text: str, start: Bound, stop: Bound | None) -> None:
    assert parse_offset_range(text, NOW) == OffsetRange(start, stop)


@pytest.mark.parametrize("text", ["never", "1.5", "@", "@soon", "5:soon", "--3", "@2024-13-01", "@-5y", ""])
def test_other_words_are_refused_with_examples(text: str) -> None:
    if text in {"", "@"}:  # nothing said: from the start
        assert parse_offset_range(text, NOW) == OffsetRange(START, None)
        return
    with pytest.raises(ValueError, match="try"):
        parse_offset_range(text, NOW)
