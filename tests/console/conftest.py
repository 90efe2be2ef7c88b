"""The console in a real browser: Debian's Chromium, a cluster of three brokers, and axe for accessibility.

`cluster` and the browser are shared by all tests of a run; tests use topics and groups of their own. A test that kills
brokers starts them again. Every test fails if the browser complains, unless it says `browser.expecting(...)`.
"""

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401  first imported here: it loads its message schemas in a deprecated way

from browser import DESKTOP, Browser, forget_everything, start_chromium
from console_cluster import ConsoleCluster, start_console_cluster
from one_worker import one_worker_at_a_time
from selenium import webdriver

ROOT = Path(__file__).resolve().parents[2]
AXE_VERSION = "4.14.0"
AXE = ROOT / "build" / f"axe-core-{AXE_VERSION}" / "package" / "axe.min.js"
TEST_SECONDS_MAX = 300
INSTALL_SECONDS_MAX = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))


def _chromium() -> tuple[str, str] | None:
    programs = shutil.which("chromium"), shutil.which("chromedriver")
    return (programs[0], programs[1]) if programs[0] and programs[1] else None


def _install_chromium() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    for command in (["update", "-qq"], ["install", "-y", "-qq", "chromium", "chromium-driver"]):
        subprocess.run(["apt-get", *command], check=False, timeout=INSTALL_SECONDS_MAX, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with one_worker_at_a_time():
        if _chromium() is None:
            _install_chromium()
    programs = _chromium()
    if programs is None:
        pytest.skip("there is no chromium with chromedriver, and it cannot be installed here")
    driver = start_chromium(*programs, tmp_path_factory.mktemp("chromium"))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


def _fetch_axe() -> None:
    AXE.parents[1].mkdir(parents=True, exist_ok=True)
    packed = f"axe-core-{AXE_VERSION}.tgz"
    commands = (
        ["npm", "pack", "--silent", f"axe-core@{AXE_VERSION}"],
        ["tar", "xzf", packed, "package/axe.min.js"],
    )
    for command in commands:
        subprocess.run(command, cwd=AXE.parents[1], check=False, timeout=120, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def axe() -> str | None:
    """The script of axe-core, from npm; None where npm cannot fetch it."""
    with one_worker_at_a_time():
        if not AXE.exists() and shutil.which("npm"):
            _fetch_axe()
    return AXE.read_text(encoding="utf-8") if AXE.exists() else None


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleCluster]:
    """Three brokers with consoles, shared by all tests."""
    cluster = start_console_cluster(tmp_path_factory.mktemp("console") / "cluster")
    yield cluster
    sys.stderr.write(cluster.logs())  # pytest shows it when a test has failed
    cluster.close()


@pytest.fixture
def browser(driver: webdriver.Chrome, axe: str | None) -> Iterator[Browser]:
    """A page of a browser that remembers nothing of the tests before."""
    forget_everything(driver)
    browser = Browser(driver, axe)
    browser.resize(*DESKTOP)
    browser.prefer("light")
    yield browser
    browser.check_complaints()
