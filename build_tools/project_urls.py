"""Set the addresses of the project in the metadata of its packages: those of the repository that they are built from.

The address is the environment variable SSKAFKA_REPOSITORY or, without it, that of the git remote `origin`, if it is a
web address. A package that is built from a copy without either has no addresses.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "SSKAFKA_REPOSITORY"


class ProjectUrls(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        remote = os.environ.get(REPOSITORY) or _origin(Path(self.root))
        metadata["urls"] = urls_of(remote)


def urls_of(remote: str) -> dict[str, str]:
    """Return the addresses of a repository; `git@HOST:PATH` is written as the web address that such hosts have."""
    address = re.sub(r"^(?:ssh://)?git@([^:/]+)[:/]", r"https://\1/", remote.strip()).removesuffix(".git").rstrip("/")
    if not re.match(r"https?://[^/@]+/.", address):  # a path, or an address with a password
        return {}
    files = f"{address}/blob/main"
    return {
        "Repository": address,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def _origin(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "remote", "get-url", "origin"], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # there is no git
        return ""
    return done.stdout
