import pytest

from sskafka.model.properties import PropertiesError, format_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb=2", {"a": "1", "b": "2"}),
        ("  a = 1\n", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a\t:  1 ", {"a": "1 "}),
        ("a", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("# x=1\n! y=2\n\n   # z=3\na=1", {"a": "1"}),
        ("a=1#2", {"a": "1#2"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=one\\\n# not a comment", {"a": "one# not a comment"}),
        ("a=x\\\n", {"a": "x"}),
        ("k\\=e\\:y\\ z=1", {"k=e:y z": "1"}),
        ("a=\\t\\n\\u0041\\q", {"a": "\t\nAq"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
    ],
)
def test_reads_every_form_that_java_writes(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(PropertiesError, match="four hexadecimal digits"):
        parse_properties("a=\\u12")


def test_writes_the_comment_first() -> None:
    assert format_properties({"node.id": "1", "a b": " x"}, "made\ntoday") == "#made\n#today\nnode.id=1\na\\ b=\\ x\n"
