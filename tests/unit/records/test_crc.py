import subprocess
import sys

import pytest

from sskafka.records import crc


def test_the_known_answer() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283
    assert crc.crc32c(memoryview(bytearray(b"x123456789"))[1:]) == 0xE3069283


def test_a_broker_does_not_load_what_the_package_loads_for_its_version() -> None:
    script = (
        "import sys, sskafka.records.batch, sskafka.records.crc as crc\n"
        "assert 'importlib.metadata' not in sys.modules, 'the package was imported'\n"
        "import crc32c\n"
        "assert crc32c.crc32c is crc.crc32c\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_where_the_extension_is_not_found_the_package_has_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc, "_extension", lambda: None)
    assert crc._load()(b"123456789") == 0xE3069283
