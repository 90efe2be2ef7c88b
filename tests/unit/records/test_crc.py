import subprocess
import sys

import pytest

from sskafka.records import crc


def test_check_value() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283
    assert crc.crc32c(memoryview(bytearray(b"x123456789"))[1:]) == 0xE3069283


def test_the_package_is_not_imported() -> None:
    script = (
        "import sys, sskafka.records.batch, sskafka.records.crc as crc\n"
        "assert 'importlib.metadata' not in sys.modules, 'the package was imported'\n"
        "import crc32c\n"
        "assert crc32c.crc32c is crc.crc32c\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_package_is_used_without_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc, "_extension", lambda: None)
    assert crc._load()(b"123456789") == 0xE3069283
