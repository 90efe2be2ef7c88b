"""Run the unit tests on every supported Python that is on the PATH: `make test-all`.

Each interpreter has a virtual environment of its own in build/. Versions that are not there are named and left out, and
so are shims of version managers that lead to none.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/unit", "--ignore=tests/unit/pipelines", "--ignore=tests/unit/docs")

TEST_SECONDS_MAX = 300
"""A test that does not end on another version of Python fails."""


def interpreter(version: str) -> str | None:
    """Return the program of a version, if it runs: a shim of a version manager may not."""
    program = shutil.which(f"python{version}")
    if program is None:
        return None
    works = subprocess.run([program, "-c", "import venv, ensurepip"], capture_output=True, check=False)
    return program if works.returncode == 0 else None


def test(version: str, program: str) -> bool:
    home = ROOT / "build" / f"python-{version}"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([program, "-m", "venv", str(home)], check=True)
        extras = f"{ROOT}[fast,executor,test,dev]"
        install = [str(python), "-m", "pip", "install", "--quiet", "-c", "constraints.txt", "-e", extras]
        subprocess.run(install, cwd=ROOT, check=True)
    options = ("-q", "-n", "2", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS_MAX}")
    command = [str(python), "-m", "pytest", *options, *TESTS, *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main() -> None:
    failed = []
    for version in VERSIONS:
        program = interpreter(version)
        print(f"Python {version}: {program or 'left out, because none that runs is on the PATH'}", flush=True)
        if program is not None and not test(version, program):
            failed.append(version)
    if failed:
        sys.exit(f"failed on Python {', '.join(failed)}")


if __name__ == "__main__":
    main()
