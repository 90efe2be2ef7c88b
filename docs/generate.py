"""Writes what docs/ draws from the code: run `python docs/generate.py` after changing a setting or the API table."""

from pathlib import Path
from re import DOTALL, sub

from sskafka.model.settings_docs import configuration_page
from sskafka.wire.apis import API_BY_KEY, Api, Listeners

DOCS = Path(__file__).parent
BEGIN, END = "<!-- the API table -->", "<!-- end of the API table -->"


def protocol_page(page: str) -> str:
    """Return docs/protocol.md with the table of APIs as wire/apis.py has it."""
    table = "\n".join(
        (
            "| Key | API | Versions | Flexible from | Broker listeners | Controller listeners | Cluster operation |",
            "|---|---|---|---|---|---|---|",
            *(_row(api) for api in API_BY_KEY.values()),
        )
    )
    return sub(f"{BEGIN}.*{END}", f"{BEGIN}\n{table}\n{END}", page, flags=DOTALL)


def _row(api: Api) -> str:
    flexible_from = api.flexible_from if api.flexible_from <= api.max_version else "never"
    broker = "yes" if api.listeners & Listeners.BROKER else "not listed" if api.listeners & Listeners.UNLISTED else ""
    if api.forwarded:
        broker += ", forwarded"
    controller = "yes" if api.listeners & Listeners.CONTROLLER else ""
    operation = "" if api.operation is None else api.operation.name
    versions = f"{api.min_version}-{api.max_version}"
    return f"| {api.key} | {api.name} | {versions} | {flexible_from} | {broker} | {controller} | {operation} |"


if __name__ == "__main__":
    (DOCS / "configuration.md").write_text(configuration_page(), encoding="utf-8")
    protocol = DOCS / "protocol.md"
    protocol.write_text(protocol_page(protocol.read_text(encoding="utf-8")), encoding="utf-8")
