"""What all tests share: a failed check says what it compared, and a failed test keeps the directories of its brokers.

A test fails when the data loop of a broker that it used had a turn of more than 250 ms of CPU time.

In continuous integration (`CI` is set) a failed test that starts processes runs once more: on a machine that stands
still for seconds such tests fail with time-outs. The summary lists such tests as `RERUN`. Pure tests never run again.

pytest rewrites the `assert` statements of test files alone. Those of helper modules are registered here, before any of
them is imported, so that their failures show values too.
"""

import os
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.support.slow_turns import SlowTurns

TESTS = Path(__file__).resolve().parent
BROKER_FILE = "server.properties"
STARTS_PROCESSES = {"console", "hostile", "integration", "interop", "spark"}
"""Directories whose tests depend on the time that other processes take."""
_FAILED = pytest.StashKey[list[Path]]()
_KEPT = pytest.StashKey[Path]()
_SLOW_TURNS = pytest.StashKey[SlowTurns]()

# On a busy machine the generation of any input may take seconds, and so may any example.
settings.register_profile("any-machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

_helpers = {path.stem for path in TESTS.rglob("*.py") if not path.stem.startswith("test_")}
pytest.register_assert_rewrite(*sorted(_helpers - {"conftest", "__init__"}))


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background of a shell. Processes would inherit that, and tests interrupt some of them.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.strftime("%Y%m%d-%H%M%S")
    config.stash[_KEPT] = TESTS.parent / "build" / "failed-tests" / f"{started}-{os.getpid()}"
    config.stash[_FAILED] = []
    config.stash[_SLOW_TURNS] = SlowTurns()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("CI"):
        return
    for item in items:
        if _starts_processes(item):
            item.add_marker(pytest.mark.flaky(reruns=1))


def _starts_processes(item: pytest.Item) -> bool:
    return not STARTS_PROCESSES.isdisjoint(item.path.relative_to(TESTS).parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    own: Path | None = getattr(item, "funcargs", {}).get("tmp_path")
    yield
    shared = _shared_directories(item.config) if _starts_processes(item) else []
    is_end_of_file = nextitem is None or nextitem.path != item.path
    slow = item.config.stash[_SLOW_TURNS].take([own] if own else [], shared, is_end_of_file=is_end_of_file)
    if slow:
        pytest.fail("a request kept all clients of a broker waiting:\n" + "\n".join(slow), pytrace=False)


def _shared_directories(config: pytest.Config) -> list[Path]:
    """Return the directories of brokers that several tests use."""
    factory: pytest.TempPathFactory | None = getattr(config, "_tmp_path_factory", None)
    if factory is None or factory._basetemp is None:
        return []
    return [path for path in factory._basetemp.iterdir() if not path.name.startswith("test_") and path.is_dir()]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        directory: Path | None = getattr(item, "funcargs", {}).get("tmp_path")
        item.config.stash[_FAILED].append(directory or Path())
        if directory is not None and has_brokers(directory):
            place = item.config.stash[_KEPT] / directory.name
            report.sections.append(("brokers of the failed test", f"Their directories and logs are kept in {place}"))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Copy the directories of brokers that failed tests used, theirs alone and shared ones; the brokers have ended.

    pytest itself keeps temporary directories of its last three runs only."""
    failed, place = session.config.stash[_FAILED], session.config.stash[_KEPT]
    factory: pytest.TempPathFactory | None = getattr(session.config, "_tmp_path_factory", None)
    if not failed or factory is None:
        return
    for directory in factory.getbasetemp().iterdir():
        is_shared = not directory.name.startswith("test_")
        if (is_shared or directory in failed) and has_brokers(directory):
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", str(directory), str(place)], check=False)


def has_brokers(directory: Path) -> bool:
    return any(directory.rglob(BROKER_FILE))
