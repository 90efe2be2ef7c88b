"""Jars from Maven Central, only for comparison and interoperability tests: SSKafka itself uses none.

The jars of a pom are copied to a directory below `build/`, together with the pom. If the pom changes, they are resolved
again.
"""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESOLVE_SECONDS_MAX = 600


class UnavailableError(Exception):
    """A program from outside PyPI is not available; the message says why."""


def resolve_jars(pom: Path, cache: Path) -> Path:
    """Return the directory with the jars of `pom`, from the cache or by Maven; raise UnavailableError on failure."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise UnavailableError(f"{program} is not installed")
    libs, resolved_for = cache / "libs", cache / "resolved.pom.xml"
    if not resolved_for.exists() or resolved_for.read_bytes() != pom.read_bytes():
        shutil.rmtree(cache, ignore_errors=True)
        _copy_dependencies(pom, libs)
        shutil.copyfile(pom, resolved_for)
    return libs


def _copy_dependencies(pom: Path, libs: Path) -> None:
    libs.mkdir(parents=True)
    command = [
        "mvn",
        "--batch-mode",
        "--quiet",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={libs}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"mvn took longer than {RESOLVE_SECONDS_MAX} s") from error
    if done.returncode != 0:
        raise UnavailableError(f"mvn could not resolve {pom.name}: {(done.stdout + done.stderr).strip()[:500]}")
