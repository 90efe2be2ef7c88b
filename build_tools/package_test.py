"""Build the sdist and the wheel, check both, and use the wheel as a new user does: `make package-test`.

build, twine check      the files are well formed, and the description can be shown
size                    the console takes less than a megabyte of the wheel
an empty environment    the wheel and its dependencies, nothing else: no extras
pip show                names the repository that the wheel was built from
--version, --help       of all commands, also of those that need an extra to run
a broker                starts; a record goes in and comes out
uninstall               leaves nothing behind
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("build==1.6.1", "twine==7.0.0")
CONSOLE = "sskafka/servers/http/console/"
CONSOLE_BYTES_MAX = 1_000_000
ZIP_ENTRY_BYTES = 30 + 46  # headers of a file in a zip archive, besides its name
REPOSITORY = "https://git.example/sskafka"
PIPELINE_HINT = "pip install '.[spark]'"


def run(*words: str | Path, input_text: str = "", cwd: Path | None = None, code: int = 0) -> str:
    """Return what the command printed. Exit if its exit code is another one."""
    done = subprocess.run(
        [str(word) for word in words], input=input_text, capture_output=True, text=True, cwd=cwd, check=False
    )
    said = done.stdout + done.stderr
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{said}")
    return said


def build(directory: Path) -> tuple[Path, Path]:
    """Return the sdist and the wheel that is built from it."""
    tools = directory / "tools"
    venv.create(tools, with_pip=True)
    python = tools / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", *TOOLS)
    # `make test-compiled` has the compiled build
    environment = {**os.environ, "SSKAFKA_COMPILE": "0", "SSKAFKA_REPOSITORY": REPOSITORY}
    subprocess.run(
        [python, "-m", "build", "--outdir", directory / "dist", ROOT],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    files = sorted((directory / "dist").iterdir())
    said = run(python, "-m", "twine", "check", "--strict", *files)
    assert said.count("PASSED") == 2, said
    (sdist,) = (directory / "dist").glob("*.tar.gz")
    (wheel,) = (directory / "dist").glob("*.whl")
    return sdist, wheel


def console_bytes(wheel: Path) -> int:
    """Return how many bytes of the wheel are files of the console. Exit if they are too many."""
    with zipfile.ZipFile(wheel) as files:
        found = [file for file in files.infolist() if CONSOLE in file.filename]
    size = sum(file.compress_size + 2 * len(file.filename) + ZIP_ENTRY_BYTES for file in found)
    assert any(file.filename.endswith("index.html") for file in found), f"{wheel.name} lacks the console"
    assert size < CONSOLE_BYTES_MAX, f"the console takes {size} bytes of the wheel, more than {CONSOLE_BYTES_MAX}"
    return size


@contextmanager
def broker(sskafka: Path, directory: Path) -> Iterator[str]:
    """Yield the address of a broker that runs in `directory`."""
    listeners = (
        "--set",
        "listeners=PLAINTEXT://127.0.0.1:0",
        "--set",
        "http.listener=127.0.0.1:0",
        "--set",
        "adr.listener=",
    )
    with (directory / "broker.log").open("w") as log:
        process = subprocess.Popen(
            [str(sskafka), "start", *listeners], cwd=directory, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("READY bootstrap="), (directory / "broker.log").read_text()
        yield ready.split()[1].removeprefix("bootstrap=")
    finally:
        process.terminate()
        process.wait(60)


def use(wheel: Path, directory: Path) -> None:
    home = directory / "empty"
    venv.create(home, with_pip=True)
    pip, sskafka = home / "bin" / "pip", home / "bin" / "sskafka"
    before = _files(home)
    run(pip, "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    print(run(sskafka, "--version").strip())
    assert f"Repository, {REPOSITORY}" in run(pip, "show", "--verbose", "sskafka"), "the wheel names its repository"
    commands = _commands(run(sskafka, "--help"))
    assert {"start", "broker", "pipeline"} <= set(commands), commands
    for command in commands:
        run(sskafka, command, "--help")
    assert PIPELINE_HINT in run(sskafka, "pipeline", "plan", "sessions", code=1), "the hint works from a checkout"
    with broker(sskafka, directory) as address:
        run(sskafka, "topic", "create", "orders", "-b", address)
        run(sskafka, "topic", "produce", "orders", "-b", address, input_text="hello\n")
        assert "hello" in run(sskafka, "topic", "consume", "orders", "-b", address, "-o", "start", "-n", "1")
    run(pip, "uninstall", "--quiet", "--yes", "sskafka")
    left = [path for path in _files(home) - before if "sskafka" in path.as_posix()]
    assert left == [], f"left behind: {left}"


def _commands(help_text: str) -> list[str]:
    """Return the commands that a help page lists."""
    return re.findall(r"^  ([a-z]+) {2,}\S", help_text.partition("Commands:")[2], re.MULTILINE)


def _files(directory: Path) -> set[Path]:
    return {path.relative_to(directory) for path in directory.rglob("*") if path.is_file()}


def main() -> None:
    directory = Path(tempfile.mkdtemp(prefix="sskafka-package-"))
    try:
        sdist, wheel = build(directory)
        print(f"{sdist.name} {sdist.stat().st_size // 1024} KiB, {wheel.name} {wheel.stat().st_size // 1024} KiB")
        print(f"the console takes {console_bytes(wheel) // 1024} KiB of the wheel")
        use(wheel, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print("the package can be built, installed, used and removed")


if __name__ == "__main__":
    main()
