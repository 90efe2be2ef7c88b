"""Pipelines that are bundled with SSKafka: NAME.yaml is the pipeline, NAME.py generates input with a known result.

Files and checkpoint of such a pipeline are in the directory in which it is run, not next to its YAML file. `wiring`
connects it to other topics; `selfcheck` runs it on the known input and compares the result.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sskafka.pipelines.files.pipeline import Pipeline
    from sskafka.pipelines.files.variables import FileOptions


def shipped_files() -> list[Path]:
    return sorted(Path(__file__).parent.glob("*.yaml"))


def shipped_file(name: str) -> Path | None:
    return next((file for file in shipped_files() if file.stem == name), None)


def shipped_names() -> list[str]:
    return [file.stem for file in shipped_files()]


def load_shipped(name: str, directory: Path | None = None, options: "FileOptions | None" = None) -> "Pipeline":
    """Return a bundled pipeline as if its file were in `directory`, which is the current directory by default."""
    from sskafka.pipelines.files.pipeline import load_pipeline  # noqa: PLC0415  YAML comes with an extra

    file = shipped_file(name)
    if file is None:
        raise LookupError(f"there is no bundled pipeline {name!r}; there are {', '.join(shipped_names())}")
    return replace(load_pipeline(file, options), path=(directory or Path()).resolve() / file.name)
