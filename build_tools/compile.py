"""Compile the hot path with mypyc: the modules in MODULES, from the same source that runs uncompiled.

    python build_tools/compile.py           build beside the source, for this checkout (`make compile`)
    python build_tools/compile.py clean     remove what that built

All modules go into one shared library, so that they call each other directly; each module also has a small extension of
its own, which Python's import finds before the `.py` file. The generated C is in a temporary directory. A stamp in the
package lists the modules and, in a checkout, the sources that they depend on: src/sskafka/compiled.py reads it and
ignores modules that were compiled from other sources.

Only errors that keep mypyc from compiling stop the build: `make types` is strict.
"""

import ast
import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PACKAGE = "sskafka"
SUFFIX = EXTENSION_SUFFIXES[0]
"""E.g. `.cpython-311-x86_64-linux-gnu.so`: other interpreters do not see these files."""
STAMP = f"{PACKAGE}/compiled{SUFFIX}.stamp"

MODULES = (
    "client/frames",
    "model/counters",
    "partition/follower_progress",
    "partition/in_sync_replicas",
    "partition/leader_state",
    "partition/log_offsets",
    "partition/truncation",
    "records/batch",
    "records/inspection",
    "records/usual_records",
    "records/varint",
    "replication/fetch_session",
    "replication/fetcher",
    "replication/follower_log",
    "replication/partition",
    "replication/readable_partition",
    "replication/reader_positions",
    "replication/replica_manager",
    "runtime/clock",
    "runtime/delayed_operation",
    "runtime/selector",
    "runtime/timer_wheel",
    "servers/kafka/connection",
    "servers/kafka/fair_turns",
    "servers/kafka/handlers/fetch/follower_session",
    "servers/kafka/handlers/fetch/handler",
    "servers/kafka/handlers/fetch/operation",
    "servers/kafka/handlers/fetch/readers",
    "servers/kafka/handlers/fetch/session",
    "servers/kafka/handlers/fetch/sessions",
    "servers/kafka/handlers/produce",
    "servers/kafka/listener",
    "servers/kafka/outgoing",
    "servers/kafka/request",
    "servers/kafka/served_api",
    "servers/kafka/socket_transport",
    "storage/append_checks",
    "storage/durable_log",
    "storage/file_slice",
    "storage/leader_epochs",
    "storage/log",
    "storage/log_tail",
    "storage/offset_index",
    "storage/producers/entry",
    "storage/producers/state",
    "storage/readable_log",
    "storage/segment",
    "storage/segments",
    "storage/sparse_index",
    "storage/time_index",
    "wire/codec",
    "wire/fetch",
    "wire/fetch_response",
    "wire/fields",
    "wire/header",
    "wire/produce",
    "wire/varint",
)
FILES = tuple(f"{module}.py" for module in MODULES)


class CompileError(Exception):
    """There is no C compiler, or mypyc or the compiler has failed."""


def compiler() -> str | None:
    """Return the path of the C compiler that would be used."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(str(command).split(maxsplit=1)[0]) or shutil.which("cc")


def builder() -> str:
    from mypy.version import __version__  # noqa: PLC0415 - only a build needs mypy

    return f"mypyc {__version__}"


def compile_into(directory: Path) -> list[Path]:
    """Compile the modules into `directory`, laid out as below `src`; return the files, relative to it."""
    if compiler() is None:
        raise CompileError("there is no C compiler")
    try:
        from mypyc.build import mypycify  # noqa: PLC0415
        from setuptools import Distribution  # noqa: PLC0415
    except ImportError as error:
        raise CompileError(f"mypyc and setuptools are needed: {error}") from error
    before = Path.cwd()
    os.chdir(SOURCE)  # tracebacks show the paths that mypyc was given
    try:
        with tempfile.TemporaryDirectory(prefix="sskafka-c-") as generated:
            extensions = mypycify(
                ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
                + [f"{PACKAGE}/{file}" for file in FILES],
                group_name=PACKAGE,
                debug_level="0",
                target_dir=generated,
            )
            command = Distribution({"name": PACKAGE, "ext_modules": extensions}).get_command_obj("build_ext")
            command.build_lib, command.build_temp = str(directory), generated
            command.ensure_finalized()
            command.run()
    except SystemExit as error:  # mypyc has printed what is wrong
        raise CompileError("mypyc failed") from error
    except Exception as error:
        raise CompileError(f"the C compiler failed: {error}") from error
    finally:
        os.chdir(before)
    return sorted(path.relative_to(directory) for path in directory.rglob(f"*{SUFFIX}"))


def stamp_text(with_sources: bool) -> str:
    """Return what src/sskafka/compiled.py reads; `with_sources` for a checkout, where sources are edited."""
    lines = [builder(), *(f"module\t{file}" for file in FILES)]
    if with_sources:
        lines += [f"source\t{file}\t{_noted(SOURCE / PACKAGE / file)}" for file in depended_on()]
    return "\n".join(lines) + "\n"


def _noted(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size}\t{found.st_mtime_ns}\t{hashlib.sha256(path.read_bytes()).hexdigest()}"


def depended_on() -> list[str]:
    """Return the files of the package that the modules import, directly or not: their types shape the compiled code."""
    found: set[str] = set()
    pending = list(FILES)
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += _imported(SOURCE / PACKAGE / file)
    return sorted(found)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            base = node.module.removeprefix(f"{PACKAGE}.").replace(".", "/")
            for name in (base, *(f"{base}/{alias.name}" for alias in node.names), f"{base}/__init__"):
                if (SOURCE / PACKAGE / f"{name}.py").is_file():
                    yield f"{name}.py"


def build_in_place() -> None:
    """Put compiled modules beside their source. An interrupted build leaves a stamp that makes Python ignore them."""
    stamp = SOURCE / STAMP
    with tempfile.TemporaryDirectory(prefix="sskafka-compiled-") as directory:
        noted = stamp_text(with_sources=True)  # before the build: what is edited meanwhile was not compiled
        files = compile_into(Path(directory))
        stamp.write_text(
            f"{builder()}\n" + "".join(f"module\t{file}\n" for file in FILES) + "source\tunder way\t0\t0\t0\n"
        )
        _remove_modules()
        for file in files:
            shutil.move(Path(directory) / file, SOURCE / file)
    stamp.write_text(noted)


def clean() -> None:
    _remove_modules()
    for stamp in (SOURCE / PACKAGE).glob("compiled.*.stamp"):
        stamp.unlink()


def _remove_modules() -> None:
    for pattern in ("*.so", f"{PACKAGE}/**/*.so"):
        for path in SOURCE.glob(pattern):
            path.unlink()


def main() -> None:
    if sys.argv[1:] == ["clean"]:
        clean()
        return
    try:
        build_in_place()
    except CompileError as error:
        sys.exit(f"compile: {error}")
    print(f"compiled {len(MODULES)} modules with {builder()} for {SUFFIX}")


if __name__ == "__main__":
    main()
