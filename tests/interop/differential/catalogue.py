"""All scripts by name."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from differential.scripts import (
    api_versions,
    classic_groups,
    cluster,
    committed_offsets,
    configs,
    consumer_groups,
    fetch,
    listeners,
    malformed,
    offsets,
    produce,
    reassignments,
    security,
    topics,
    transactions,
)
from differential.session import Session

ONE_BROKER = (
    api_versions, topics, produce, fetch, offsets, configs, classic_groups, committed_offsets, consumer_groups,
    transactions, cluster, security, malformed,
    listeners,
)  # fmt: skip
THREE_BROKERS = (reassignments,)


class Script(NamedTuple):
    name: str
    run: Callable[[Session], None]

    @property
    def prefix(self) -> str:
        """Names that the script gives begin with this; no other script's names do."""
        return self.name.replace("_", "-")


def scripts_of(modules: tuple[ModuleType, ...]) -> list[Script]:
    return [
        Script(f"{module.__name__.rsplit('.', 1)[-1]}.{name}", function)
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and _is_script(name, function)
    ]


def _is_script(name: str, function: Callable[..., object]) -> bool:
    return list(inspect.signature(function).parameters) == ["session"] and not name.startswith("_")
