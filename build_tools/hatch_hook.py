"""Build hook: compile the hot path into wheels, where a C compiler is there.

Otherwise the wheel is pure Python, and one line says so. Editable installs are always pure: `make compile` compiles a
checkout. SSKAFKA_COMPILE=0 builds a pure wheel, SSKAFKA_COMPILE=1 fails where it cannot compile.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compile import STAMP, CompileError, compile_into, stamp_text

VARIABLE = "SSKAFKA_COMPILE"
NEVER, ALWAYS = "0", "1"


class CompileHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wish = os.environ.get(VARIABLE, "")
        if version == "editable" or wish == NEVER:
            return
        self._directory = tempfile.TemporaryDirectory(prefix="sskafka-compiled-")
        built = Path(self._directory.name)
        try:
            files = compile_into(built)
        except CompileError as error:
            if wish == ALWAYS:
                raise
            self.app.display_warning(f"sskafka is installed as pure Python, without compiled modules: {error}")
            return
        (built / STAMP).write_text(stamp_text(with_sources=False))
        build_data["force_include"].update({str(built / file): str(file) for file in [*files, Path(STAMP)]})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_directory"):
            self._directory.cleanup()
