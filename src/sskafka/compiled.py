"""Which build of the hot path runs: modules that mypyc has compiled, or the Python source.

build_tools/compile.py puts compiled modules beside their source, where Python's import prefers them, and a stamp into
the package. The stamp is named after the interpreter, as the compiled modules are. Its first line says what built
them, and every other line names a file:

    module    records/batch.py
    source    records/batch.py  size  time of the last change (ns)  SHA-256

The stamp of a wheel has only modules. `make compile` also notes all sources that the compiled modules depend on. If one
of them has changed since, the compiled modules are ignored, all of them, because they rely on each other's layout: an
old compiled module never hides an edited source. `SSKAFKA_PURE=1` ignores them, too.

This module runs before any other of the package and has to be cheap: a few microseconds without a stamp, and 2
microseconds for each source.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import ModuleType

PURE_VARIABLE = "SSKAFKA_PURE"
STAMP_PREFIX = "compiled"
MODULE, SOURCE = "module", "source"

_DIRECTORY = os.path.dirname(__file__)
_PACKAGE = __name__.rpartition(".")[0]


class PureFinder:
    """Finds the source of modules even if there are compiled modules beside it."""

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths = paths

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._paths:
            return None
        from importlib.util import spec_from_file_location  # noqa: PLC0415 - only where compiled modules are ignored

        return spec_from_file_location(name, self._paths[name])


def stamp_path(directory: str) -> str:
    return os.path.join(directory, STAMP_PREFIX + EXTENSION_SUFFIXES[0] + ".stamp")


def module_name(file: str) -> str:
    """Return the name of the module in a file of the package: `records/batch.py` is `sskafka.records.batch`."""
    return f"{_PACKAGE}.{file.removesuffix('.py').replace('/', '.')}"


def changed_source(directory: str, lines: Sequence[Sequence[str]]) -> str | None:
    """Return the first source that is not the one that was compiled."""
    for kind, file, *noted in lines:
        if kind == SOURCE and not _is_unchanged(os.path.join(directory, file), *noted):
            return file
    return None


def _is_unchanged(path: str, size: str, changed_ns: str, digest: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    if found.st_size != int(size):
        return False
    return found.st_mtime_ns == int(changed_ns) or _digest(path) == digest  # a checkout may restore the same content


def _digest(path: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 - only for files with another time

    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()


def _build_in(directory: str) -> tuple[bool, str]:
    """Return whether compiled modules are used, and the build in words. Ignore those that must not be used."""
    try:
        with open(stamp_path(directory), encoding="utf-8") as stamp:
            builder, *rest = stamp.read().splitlines()
    except (OSError, ValueError):
        return False, "pure Python"
    lines = [line.split("\t") for line in rest]
    changed = None
    if not os.environ.get(PURE_VARIABLE):
        changed = changed_source(directory, lines)
        if changed is None:
            return True, f"compiled by {builder}"
    modules = {module_name(file): os.path.join(directory, file) for kind, file, *_ in lines if kind == MODULE}
    sys.meta_path.insert(0, PureFinder(modules))
    if changed is None:
        return False, f"pure Python, because {PURE_VARIABLE} is set"
    sys.stderr.write(
        f"sskafka: {changed} has changed since `make compile`: the compiled modules are ignored until it is run again\n"
    )
    return False, f"pure Python: {changed} has changed since `make compile`"


IS_COMPILED, BUILD = _build_in(_DIRECTORY)
"""Whether the compiled modules are used, and which build runs, in words."""
