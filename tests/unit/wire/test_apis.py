import subprocess
import sys
from pathlib import Path

from docs import generate

from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.schema import Kind, Versions


def test_the_table_agrees_with_the_messages() -> None:
    for key, api in API_BY_KEY.items():
        for cls, kind in ((api.request_class(), Kind.REQUEST), (api.response_class(), Kind.RESPONSE)):
            assert cls.__name__ == api.name + kind.value.title()
            assert cls.SCHEMA.kind is kind
            assert cls.SCHEMA.key == key == api.key
            assert cls.SCHEMA.versions == Versions(api.min_version, api.max_version)
            assert cls.SCHEMA.flexible_from == api.flexible_from


def test_every_key_has_a_name() -> None:
    assert API_BY_KEY.keys() == {int(key) for key in ApiKey}
    for key in ApiKey:
        assert key.name.replace("_", "").lower() == API_BY_KEY[key].name.lower()


def test_the_table_imports_no_messages() -> None:
    script = "import sys, sskafka.wire.apis; print([name for name in sys.modules if '.messages.' in name])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_page_of_the_protocol_has_the_table() -> None:
    page = (Path(generate.__file__).parent / "protocol.md").read_text(encoding="utf-8")
    assert generate.protocol_page(page) == page, "run: python docs/generate.py"
    assert "| 26 | EndTxn | 0-5 | 3 | yes |  |  |" in page
