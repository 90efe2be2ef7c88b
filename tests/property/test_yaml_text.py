"""YAML output: a YAML parser reads what a JSON parser reads from the JSON output."""

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sskafka.cli.yaml_text import yaml_text

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_yaml_says_what_json_says(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == json.loads(json.dumps(value))
