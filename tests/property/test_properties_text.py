from hypothesis import given
from hypothesis import strategies as st

from sskafka.model.properties import format_properties, parse_properties

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT.filter(bool), TEXT))
def test_what_is_written_is_read_back(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties
