"""CRC-32C, by the C extension of the package crc32c.

The package finds out its own version when it is imported, and for that loads what takes a twentieth of a broker's
start. So the extension is loaded without it; where it is not found, the package has to do.
"""

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec

from sskafka.model.buffers import Buffer

PACKAGE, EXTENSION = "crc32c", "crc32c._crc32c"


def _extension() -> ModuleSpec | None:
    package = PathFinder.find_spec(PACKAGE)
    if package is None or EXTENSION in sys.modules:
        return None
    return PathFinder.find_spec(EXTENSION, package.submodule_search_locations)


def _load() -> Callable[[Buffer], int]:
    spec = _extension()
    if spec is None or spec.loader is None:
        from crc32c import crc32c as of_package  # noqa: PLC0415

        return of_package
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[EXTENSION] = module  # the package itself, when somebody else imports it, finds it here
    of_extension: Callable[[Buffer], int] = module.crc32c
    return of_extension


crc32c = _load()
