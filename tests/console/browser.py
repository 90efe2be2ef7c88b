"""Chromium for tests of the console: what a reader sees, clicks and types, and what the browser complains about."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")

WAIT_S = 30
DESKTOP, PHONE = (1360, 900), (390, 844)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)


def start_chromium(program: str, driver: str, profile: Path) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


class Browser:
    """One page. Elements are found by CSS selectors, or by the text that a reader sees."""

    def __init__(self, driver: webdriver.Chrome, axe: str | None = None) -> None:
        self.driver = driver
        self._axe = axe
        self._expected: tuple[str, ...] = ()

    def open(self, url: str, page: str = "") -> None:
        """Open a page of the console, e.g. `topics/orders`, as if it were typed into the address bar."""
        self.driver.get("about:blank")
        self.driver.get(f"{url}/#/{page}")
        self.wait_for("main h1")

    # -- how it looks

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Make the system prefer `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    # -- what is there

    @property
    def text(self) -> str:
        """The text of the whole page, as a reader sees it."""
        return str(self.run("return document.body.innerText"))

    def find(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of all elements, read at one moment."""
        return list(
            self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", selector)
        )

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)  # type: ignore[no-untyped-call]

    def run_async(self, script: str, *arguments: object) -> Any:
        """Run a script that calls its last argument with the result."""
        return self.driver.execute_async_script(script, *arguments)  # type: ignore[no-untyped-call]

    # -- waiting

    def wait_until(self, condition: Callable[[], T], what: str, timeout_s: float = WAIT_S) -> T:
        """Return the first true value of the condition."""
        wait = WebDriverWait(self.driver, timeout_s, 0.1, [StaleElementReferenceException])
        try:
            return wait.until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"not within {timeout_s:g} s: {what}\n{self.text}") from None

    def wait_for(self, selector: str, timeout_s: float = WAIT_S) -> WebElement:
        return self.wait_until(lambda: self.find(selector), f"{selector} is there", timeout_s)[0]

    def wait_for_text(self, text: str, timeout_s: float = WAIT_S, selector: str = "body") -> None:
        self.wait_until(lambda: any(text in one for one in self.texts(selector)), f"{text!r} is shown", timeout_s)

    def wait_until_gone(self, selector: str, timeout_s: float = WAIT_S) -> None:
        self.wait_until(lambda: not self.find(selector), f"{selector} is gone", timeout_s)

    # -- what a reader does

    def click(self, text: str, selector: str = "button, a, summary, label, [role=tab]") -> None:
        """Click on the first visible element with this text."""

        def click_it() -> bool:
            found = [one for one in self.find(selector) if one.is_displayed() and one.text.strip() == text]
            if not found or not found[0].is_enabled():
                return False
            found[0].click()
            return True

        self.wait_until(click_it, f"{text!r} can be clicked")

    def fill(self, label: str, value: str) -> None:
        """Type into the field with this label, in place of what it has."""
        field = self.field(label)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(value or Keys.DELETE)

    def field(self, label: str) -> WebElement:
        script = """
            const labels = [...document.querySelectorAll("label")];
            return labels.findLast((one) => one.innerText.trim().startsWith(arguments[0]))?.control ?? null;
        """
        return self.wait_until(lambda: self.run(script, label), f"the field {label!r} is there")

    def press(self, *keys: str) -> None:
        """Press keys in the element that has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    # -- complaints

    @contextmanager
    def expecting(self, *texts: str) -> Iterator[None]:
        """Allow complaints with one of these texts, e.g. of requests to a broker that the test has killed."""
        self.check_complaints()
        self._expected = texts
        yield
        self.check_complaints()
        self._expected = ()

    def check_complaints(self) -> None:
        """Fail if the browser has logged errors or warnings: exceptions, failed requests, violations of the CSP."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        complaints = [entry["message"] for entry in entries if entry["level"] in {"SEVERE", "WARNING"}]
        unexpected = [text for text in complaints if not any(expected in text for expected in self._expected)]
        assert unexpected == []

    def accessibility_findings(self) -> list[str]:
        """Return the serious findings of axe, none where axe cannot be had."""
        if self._axe is None:
            return []
        self.run(self._axe)
        result = self.driver.execute_async_script(  # type: ignore[no-untyped-call]
            "const done = arguments[0];"
            "axe.run(document, {resultTypes: ['violations']}).then(done, (e) => done({error: `${e}`}))"
        )
        assert "error" not in result, result
        serious = [one for one in result["violations"] if one["impact"] in {"serious", "critical"}]
        return [
            f"{one['id']}: {one['help']}: {json.dumps([node['html'][:200] for node in one['nodes'][:3]])}"
            for one in serious
        ]


def forget_everything(driver: webdriver.Chrome) -> None:
    """Make the browser like new: no storage, no emulation, no log."""
    with suppress(WebDriverException):  # about:blank has no storage
        driver.execute_script("localStorage.clear()")  # type: ignore[no-untyped-call]
    driver.get("about:blank")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get_log("browser")  # type: ignore[no-untyped-call]
