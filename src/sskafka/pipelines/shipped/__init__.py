"""Pipelines that come with SSKafka: NAME.yaml is the pipeline, NAME.py makes input for it whose answer is known.

A pipeline from here keeps its files and its checkpoint in the directory it is run from, not beside its YAML file.
`wiring` points it at other topics, `selfcheck` runs it on the known input and compares.
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
    """The pipeline of this name, as if its file lay in `directory` (where the program was started, unless given)."""
    from sskafka.pipelines.files.pipeline import load_pipeline  # noqa: PLC0415  YAML comes with an extra

    file = shipped_file(name)
    if file is None:
        raise LookupError(f"there is no shipped pipeline {name!r}; there are {', '.join(shipped_names())}")
    return replace(load_pipeline(file, options), path=(directory or Path()).resolve() / file.name)
