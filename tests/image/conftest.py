"""One engine and one build of the image for all tests.

If no registry can be reached, a Debian with its own Python stands in for the base image. Its size is another one, so
that only what the Dockerfile adds is checked then.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine import Engine

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

PROGRAMS = ("buildah", "podman", "podman-compose", "runc", "debootstrap", "catatonit", "iptables")


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.fail(f"install {', '.join(missing)} first")
    engine = Engine(Path(tempfile.mkdtemp(prefix="sskafka-image-")))
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture(scope="session")
def has_real_base(engine: Engine) -> bool:
    """Build the image, and return whether it is based on the image that the Dockerfile names."""
    pulled = engine.has_pulled_base()
    if not pulled:
        engine.import_stand_in()
    engine.build()
    return pulled
