"""CRC-32C, from the C extension of the package crc32c.

On import, the package looks up its own version, which loads modules that take 5% of a broker's start time. The
extension is therefore loaded directly; the package is imported only if the extension is not found.
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
        from crc32c import crc32c as package_crc32c  # noqa: PLC0415

        return package_crc32c
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[EXTENSION] = module  # reused if other code imports the package
    extension_crc32c: Callable[[Buffer], int] = module.crc32c
    return extension_crc32c


crc32c = _load()
