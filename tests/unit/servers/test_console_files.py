"""The files of the console: they are whole, and fit the content security policy."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sskafka.servers.http.routes.console import CONTENT_TYPES, DIRECTORY, PAGE, read_file

VENDOR = DIRECTORY / "vendor"
MODULES = sorted(path for path in DIRECTORY.rglob("*.js") if VENDOR not in path.parents and path.name != "theme.js")
OWN_FILES = sorted(path for path in DIRECTORY.rglob("*") if path.suffix in CONTENT_TYPES and VENDOR not in path.parents)
IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+)["']""")
INLINE_PERMITTED = "http://www.w3.org/"  # names of XML namespaces, which nobody requests
BYTES_MAX = 1_000_000


def name_of(path: Path) -> str:
    return str(path.relative_to(DIRECTORY))


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_imports_lead_to_files(module: Path) -> None:
    for target in IMPORT.findall(module.read_text(encoding="utf-8")):
        assert target.startswith("."), f"{target} is not relative"
        assert (module.parent / target).resolve().is_file(), f"{target} is not there"


def test_modules_parse(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    for module in MODULES:
        copy = tmp_path / f"{module.stem}.mjs"
        copy.write_bytes(module.read_bytes())
        checked = subprocess.run([node, "--check", copy], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, f"{name_of(module)}: {checked.stderr}"


@pytest.mark.parametrize("path", OWN_FILES, ids=name_of)
def test_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace(INLINE_PERMITTED, "")
    assert not re.search(r"https?://|innerHTML|\beval\(", text)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.files: list[str] = []
        self._tag = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        given = dict(attrs)
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        self.files += [str(given[name]) for name in ("src", "href") if name in given]

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag in {"script", "style"} and data.strip():
            self.inline.append(self._tag)


def test_the_page_has_nothing_inline_and_its_files_are_there() -> None:
    page = _Page()
    page.feed((DIRECTORY / PAGE).read_text(encoding="utf-8"))
    assert page.inline == []
    assert page.files
    for file in page.files:
        assert read_file(file.removeprefix("console/")) is not None, file


def test_vendored_files_are_listed_with_their_licences() -> None:
    listed = (VENDOR / "README.md").read_text(encoding="utf-8")
    for path in VENDOR.iterdir():
        assert path.name == "README.md" or path.name in listed, path.name


def test_the_wheel_stays_small() -> None:
    assert sum(path.stat().st_size for path in DIRECTORY.rglob("*") if path.is_file()) < BYTES_MAX


@pytest.mark.parametrize(
    "name", ["../app.py", "../routes/docs.html", "/etc/hostname", "README.md", "", "lib", "nothing.js"]
)
def test_other_files_are_not_served(name: str) -> None:
    assert read_file(name) is None


def test_a_file_has_its_type_and_an_etag() -> None:
    found, page = read_file("app.js"), read_file(PAGE)
    assert found is not None
    assert page is not None
    assert found.content_type == "text/javascript; charset=utf-8"
    assert found.etag != page.etag
