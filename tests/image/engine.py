"""Podman and buildah with storage, networks and settings of their own below one directory.

Images and containers of the machine are not touched. The limits of a container are at most those of this process: an
engine that runs without CAP_SYS_RESOURCE cannot raise them, and then starts no container with its default limits.
"""

import os
import resource
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = "docker.io/library/python:3.11-slim"
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip,libpython3-dev"
"""What the stand-in for the base image has. The base image has Python's headers, too."""
MIRROR = "http://deb.debian.org/debian"
LIMIT_MAX = 4096
COMMAND_SECONDS_MAX = 3000  # the build compiles the hot path
DOCKER = """#!/bin/sh
case "$1" in
  build) shift; exec podman build --network host "$@" ;;
  compose) shift; exec podman-compose "$@" ;;
  *) exec podman "$@" ;;
esac
"""
"""Stands in for Docker's command line. A build that is repeated takes all layers from the first one."""

_UNUSED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "var/lib/apt/lists",
    "var/cache/apt",
    "usr/lib/python3.11/EXTERNALLY-MANAGED",
)


def _limit(kind: int) -> str:
    """Return a soft and a hard limit that this process may set."""
    hard = resource.getrlimit(kind)[1]
    limit = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
    return f"{limit}:{limit}"


class Engine:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "networks").mkdir()
        (home / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\nrunroot = "{home}/run"\ngraphroot = "{home}/store"\n'
        )
        limits = f'"nofile={_limit(resource.RLIMIT_NOFILE)}", "nproc={_limit(resource.RLIMIT_NPROC)}"'
        (home / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = [{limits}]\n[engine]\nruntime = "runc"\n'
            f'[network]\nnetwork_config_dir = "{home}/networks"\n'
        )
        self.environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(home / "storage.conf"),
            "CONTAINERS_CONF": str(home / "containers.conf"),
            "BUILDAH_FORMAT": "docker",  # the format of OCI has no health checks
            "BUILDAH_ISOLATION": "chroot",
            "PATH": f"{home}/bin:{os.environ['PATH']}",
        }
        (home / "bin").mkdir()
        (home / "bin" / "docker").write_text(DOCKER)
        (home / "bin" / "docker").chmod(0o755)

    def run(self, *words: str | Path) -> str:
        """Return what the command printed. Raise if it fails."""
        done = subprocess.run(
            [str(word) for word in words],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=COMMAND_SECONDS_MAX,
        )
        return done.stdout.strip()

    def has_pulled_base(self) -> bool:
        """Return whether the registry has given the base image."""
        pull = ["podman", "pull", "--quiet", BASE]
        return subprocess.run(pull, env=self.environment, capture_output=True, check=False).returncode == 0

    def import_stand_in(self) -> None:
        """Make a root file system of Debian with its Python, and give it the name of the base image."""
        root = self.home / "root"
        self.run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", root, MIRROR)
        for unused in _UNUSED:
            self.run("rm", "-rf", root / unused)
        (root / "usr/bin/python").symlink_to("python3")
        authorities = "etc/ssl/certs/ca-certificates.crt"  # a machine behind a proxy trusts more than Debian does
        (root / authorities).write_bytes((Path("/") / authorities).read_bytes())
        self.run("tar", "-C", root, "-cf", self.home / "root.tar", ".")
        self.run("podman", "import", "--quiet", self.home / "root.tar", BASE)
        self.run("rm", "-rf", root, self.home / "root.tar")

    def build(self) -> None:
        self.run("buildah", "bud", "--layers", "--network", "host", "--pull-never", "-t", "sskafka", ".")

    def size_bytes(self, image: str) -> int:
        return int(self.run("podman", "image", "inspect", "--format", "{{.Size}}", image))

    def close(self) -> None:
        """Stop the containers and remove all that was stored."""
        self.run("podman", "rm", "--all", "--force", "--time", "10")
        self.run("podman", "network", "prune", "--force")
        self.run("podman", "rmi", "--all", "--force")
        self.run("rm", "-rf", self.home)
