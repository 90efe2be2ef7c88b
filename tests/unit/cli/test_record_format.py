import pytest

from sskafka.cli.record_format import FormatError, RecordPrinter, unescape
from sskafka.cli.record_input import InputFields, RecordCutter
from sskafka.client.fetched import ConsumedRecord

HEADERS = (("a", b"1"), ("b", None))
RECORD = ConsumedRecord("orders", 2, 41, 1_700_000_000_123, b"k\xff", b"v\n", HEADERS, 5, False)
EMPTY = ConsumedRecord("orders", 0, 0, -1, None, None, (), -1, False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (r"%t/%p/%o %k=%v\n", b"orders/2/41 k\xff=v\n\n"),
        (r"%d %e", b"1700000000123 5"),
        (r"%K %V %H", b"2 2 2"),
        (r"%k{hex} %v{base64}", b"6bff dgo="),
        (r"%h", b"a:1 b: "),
        (r"%h{<%k>%v;}", b"<a>1;<b>;"),
        (r"%d{strftime[%Y-%m-%d %H:%M]}", b"2023-11-14 22:13"),
        (r"100%% \t\\\x41\0é", b"100% \t\\A\x00\xc3\xa9"),
        ("", b""),
    ],
)
def test_verbs(text: str, line: bytes) -> None:
    assert RecordPrinter(text).line(RECORD) == line


def test_nulls_are_empty_and_their_size_is_minus_one() -> None:
    assert RecordPrinter("[%k|%v|%h] %K %V %H").line(EMPTY) == b"[||] -1 -1 0"


def test_records_are_counted() -> None:
    printer = RecordPrinter("%i ")
    assert [printer.line(RECORD), printer.line(EMPTY)] == [b"1 ", b"2 "]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%x", "no %x; the verbs are"),
        ("%", "ends after a %"),
        (r"\q", r"unknown escape \\q"),
        ("%v{hex", "never closed"),
        ("%v{utf}", "unknown encoding"),
        ("%d{now}", "strftime"),
        ("%h{%o}", "verbs %k and %v"),
        ("%o{hex}", r"no %o\{\.\.\.\}"),
    ],
)
def test_bad_formats_are_explained(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        RecordPrinter(text)


def test_separators_may_have_escapes_and_percent_signs() -> None:
    assert unescape(r"\t%\x00") == b"\t%\x00"


@pytest.mark.parametrize(
    ("text", "piece", "fields"),
    [
        ("%v", b"a line", InputFields(value=b"a line")),
        (r"%k\t%v\n", b"key\tval\tue", InputFields(key=b"key", value=b"val\tue")),
        ("%p:%d:%v", b"3:17:x:y", InputFields(partition=3, timestamp=17, value=b"x:y")),
        ("%t %k %v;", b"orders k v w", InputFields(topic="orders", key=b"k", value=b"v w")),
        ("%v%%", b"", InputFields(value=b"")),
    ],
)
def test_input_is_cut(text: str, piece: bytes, fields: InputFields) -> None:
    assert RecordCutter(text).cut(piece) == fields


def test_the_last_text_ends_a_record() -> None:
    assert RecordCutter("%k:%v").record_end == b"\n"
    assert RecordCutter(r"%k:%v\0").record_end == b"\0"


@pytest.mark.parametrize("text", ["", "text", "%k%v", "%o", ":%v", "%v{hex}"])
def test_bad_input_formats_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        RecordCutter(text)


@pytest.mark.parametrize(
    ("text", "piece"),
    [("%k:%v", b"no colon"), ("%p %v", b"one x"), ("%p %v", b"2147483648 x"), ("%d %v", b"9223372036854775808 x")],
)
def test_input_that_does_not_fit_is_refused(text: str, piece: bytes) -> None:
    with pytest.raises(FormatError):
        RecordCutter(text).cut(piece)
