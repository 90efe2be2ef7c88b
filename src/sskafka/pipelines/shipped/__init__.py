"""Pipelines that come with SSKafka: a YAML file each, beside this module."""

from pathlib import Path


def shipped_files() -> list[Path]:
    return sorted(Path(__file__).parent.glob("*.yaml"))


def shipped_file(name: str) -> Path | None:
    return next((file for file in shipped_files() if file.stem == name), None)
