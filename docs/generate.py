"""Writes what is drawn from the code: run `python docs/generate.py` after changing a setting or the API table.

docs/configuration.md, docs/metrics.md, docs/api.md and the tables in docs/protocol.md and docs/acls.md; and
model/setting_names.py, the settings by their type.
"""

import inspect
from pathlib import Path
from re import DOTALL, sub
from textwrap import wrap
from typing import Any

from sskafka.client.async_clients import AsyncConsumer, AsyncProducer
from sskafka.client.sync_clients import Consumer, Producer
from sskafka.embedded import EmbeddedBroker
from sskafka.model.setting import Setting, Type, Use
from sskafka.model.settings import default_of
from sskafka.model.settings_docs import configuration_page
from sskafka.model.settings_table import BROKER_SETTINGS
from sskafka.pipelines.runner.metrics import PIPELINE_METRICS
from sskafka.servers.http.metric_table import SECTIONS, Section
from sskafka.servers.kafka.acl_rules import RULES, UNCHECKED, AclRule
from sskafka.testing.process_cluster import ProcessCluster
from sskafka.wire.apis import API_BY_KEY, Api, Listeners

DOCS = Path(__file__).parent
SETTING_NAMES = DOCS.parent / "src" / "sskafka" / "model" / "setting_names.py"
KINDS = {Type.BOOLEAN: "Boolean", Type.DOUBLE: "Float", Type.STRING: "Text", Type.LIST: "List"}
KINDS |= {Type.CLASS: "Text", Type.PASSWORD: "Text"}
MODULES = {"collections.abc.": "", "typing.": "", "pathlib._local.": "pathlib."}
"""Modules in the types of parameters, and how the page shows them; Python 3.13 names pathlib's inner module."""
WIDTH = 100
BEGIN, END = "<!-- the API table -->", "<!-- end of the API table -->"
ACLS_BEGIN, ACLS_END = "<!-- the table of ACLs -->", "<!-- end of the table of ACLs -->"


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


def acls_page(page: str) -> str:
    """Return docs/acls.md with the rules of servers/kafka/acl_rules.py."""
    checked = "\n".join(("| API | needs | error without it |", "|---|---|---|", *(_rule_row(rule) for rule in RULES)))
    unchecked = "\n".join(f"- {API_BY_KEY[key].name}: {reason}." for key, reason in UNCHECKED.items())
    table = f"{checked}\n\nNot checked:\n\n{unchecked}"
    return sub(f"{ACLS_BEGIN}.*{ACLS_END}", f"{ACLS_BEGIN}\n{table}\n{ACLS_END}", page, flags=DOTALL)


def _rule_row(rule: AclRule) -> str:
    needs = " or ".join(" and ".join(map(str, alternative)) for alternative in rule.alternatives)
    errors = dict.fromkeys(rule.error_without(need).name for alternative in rule.alternatives for need in alternative)
    shown = "hidden" if rule.is_filter else ", ".join(errors)
    return f"| {f'{API_BY_KEY[rule.api].name} {rule.case}'.strip()} | {needs} | {shown} |"


METRICS_BEGIN, METRICS_END = "<!-- the table of metrics -->", "<!-- end of the table of metrics -->"


def metrics_page(page: str) -> str:
    """Return docs/metrics.md with the tables of metrics of brokers and of pipelines."""
    sections = [*SECTIONS, Section("Pipelines", PIPELINE_METRICS)]
    table = "\n\n".join(_metric_section(section) for section in sections)
    return sub(f"{METRICS_BEGIN}.*{METRICS_END}", f"{METRICS_BEGIN}\n\n{table}\n\n{METRICS_END}", page, flags=DOTALL)


def _metric_section(section: Section) -> str:
    rows = (
        f"| `{metric.name}`{f'<br>`{metric.alias}`' if metric.alias else ''} | {metric.kind} "
        f"| {', '.join(metric.labels)} | {metric.help} |"
        for metric in section.metrics
    )
    return "\n".join((f"### {section.title}", "", "| metric | type | labels | |", "|---|---|---|---|", *rows))


API_CLASSES = {
    "sskafka.Broker": EmbeddedBroker,
    "sskafka.Producer": Producer,
    "sskafka.Consumer": Consumer,
    "sskafka.AsyncProducer": AsyncProducer,
    "sskafka.AsyncConsumer": AsyncConsumer,
    "sskafka.testing.ProcessCluster": ProcessCluster,
}


def api_page() -> str:
    """Return docs/api.md: the public classes with their methods, from their docstrings."""
    head = (
        "# API reference\n\nThe public classes of the package, written from their docstrings by `docs/generate.py`. "
        "[Clients](clients.md) and [Testing](testing.md) show how they are used."
    )
    return "\n\n".join([head, *(_class_text(name, cls) for name, cls in API_CLASSES.items())]) + "\n"


def _class_text(name: str, cls: type) -> str:
    members = [(member, getattr(cls, member)) for member in sorted(dir(cls)) if not member.startswith("_")]
    methods = [(member, value) for member, value in members if inspect.isfunction(value)]
    parts = [f"## {name}", inspect.getdoc(cls) or "", _call(name, cls.__init__)]
    for member, value in methods:
        prefix = "async " if inspect.iscoroutinefunction(value) else ""
        parts += [f"### {name.rpartition('.')[2]}.{member}", _call(prefix + member, value), inspect.getdoc(value) or ""]
    return "\n\n".join(part for part in parts if part)


def _call(name: str, function: Any) -> str:
    """Return the call with its parameters, one a line if there are many. Types are those of the source."""
    items = [item for item in inspect.signature(function).parameters.values() if item.name != "self"]
    parameters = [str(item) for item in items]
    for shown, written in MODULES.items():
        parameters = [parameter.replace(shown, written) for parameter in parameters]
    shown = f"{name}({', '.join(parameters)})"
    if len(shown) > WIDTH:
        shown = "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), ")"])
    return f"```\n{shown}\n```"


def setting_names() -> str:
    """Return model/setting_names.py: the names of the settings that brokers use, by the type of their values."""
    names: dict[str, list[str]] = {}
    for setting in BROKER_SETTINGS.values():
        if setting.use is Use.USED:
            names.setdefault(_kind(setting), []).append(setting.name)
    lines = [
        '"""Names of the settings that brokers use, by the type of their values; written by docs/generate.py."""',
        "",
        "from typing import Literal, TypeAlias",
        "",
        "# fmt: off",
    ]
    for kind in sorted(names):
        lines += [f"{kind}: TypeAlias = Literal[", *fill(", ".join(f'"{name}"' for name in names[kind])), "]"]
    return "\n".join([*lines, ""])


def fill(text: str) -> list[str]:
    return wrap(text, 120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _kind(setting: Setting) -> str:
    kind = KINDS.get(setting.type, "Integer")
    return f"Optional{kind}" if default_of(setting) is None else kind


if __name__ == "__main__":
    SETTING_NAMES.write_text(setting_names(), encoding="utf-8")
    (DOCS / "configuration.md").write_text(configuration_page(), encoding="utf-8")
    protocol = DOCS / "protocol.md"
    protocol.write_text(protocol_page(protocol.read_text(encoding="utf-8")), encoding="utf-8")
    (DOCS / "api.md").write_text(api_page(), encoding="utf-8")
    metrics = DOCS / "metrics.md"
    metrics.write_text(metrics_page(metrics.read_text(encoding="utf-8")), encoding="utf-8")
    acls = DOCS / "acls.md"
    acls.write_text(acls_page(acls.read_text(encoding="utf-8")), encoding="utf-8")
