"""The environment of the figures: machine, operating system and versions."""

import os
import platform
from importlib import metadata
from pathlib import Path

import confluent_kafka

from benchmarks.processes import PAGE_BYTES


def describe(extent_text: str, command: str) -> dict[str, object]:
    return {
        "command": command,
        "extent": extent_text,
        "machine": f"{os.cpu_count()} cores ({_processor()}), {_memory_bytes() / 1e9:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "event loop": _event_loop(),
        "client": f"librdkafka {confluent_kafka.libversion()[0]}",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES


def _event_loop() -> str:
    try:
        return f"uvloop {metadata.version('uvloop')}"
    except metadata.PackageNotFoundError:
        return "asyncio"
