"""Generate docs/configuration.md from the settings table. `docs/generate.py` writes the file."""

from collections.abc import Iterable
from typing import assert_never

from sskafka.model.group_configs import GROUP_SETTINGS
from sskafka.model.setting import INT_MAX, LONG_MAX, Setting, Use, Value, format_value
from sskafka.model.setting_sources import environment_name
from sskafka.model.settings_table import ALIASES, BROKER_SECTIONS, BROKER_SETTINGS, TOPIC_SETTINGS
from sskafka.model.settings_table.profiles import FAST_FAILOVER

_INTRODUCTION = """\
# Configuration

<!-- Written by docs/generate.py from src/sskafka/model/settings_table: change it there. -->

A broker reads Kafka's `server.properties`. The same keys work in the environment (`{example}` for `log.retention.ms`)
and on the command line (`--set log.retention.ms=1000`). The command line takes precedence over the environment, the
environment over the file, and the file over the default. An unknown key is ignored with a warning that names the
nearest known one. A value that is not allowed stops the broker with a message that names the allowed values.

A setting marked *Refused* belongs to a feature that this broker does not have: any value but the default stops the
broker, or is refused when it is set at run time, with the reason in the table. A setting marked *No effect* tunes
something that this broker does not have: it is accepted and shown, and the broker logs a warning at startup. "Change"
says whether the setting can be changed while a broker runs: for single brokers, for the whole cluster, or not at all.

Other spellings: {aliases}. In the environment also `BROKER_ID` (`node.id`), `MAX_SEGMENT_SIZE_BYTES`
(`log.segment.bytes`) and `BROKERS` (`id@host:http-port[:kafka-port],...`: the voters, and the addresses of this node
unless other settings have them).
"""
_FAST_FAILOVER = """\
## Faster failover

A broker whose process ends is replaced at once, even if it was the active controller: its host refuses connections,
which the other nodes notice ([ADR-0015](adr/0015-broken-connections-as-evidence.md)). A broker that pauses, or whose
network or power fails, does not refuse connections; with the default settings, writers wait less than 10 s until it is
replaced. With the following settings on every node, they wait less than 3 s. A broker that pauses or cannot be reached
for a second then counts as dead, so use these settings only on machines and networks with little load:

```properties
{lines}```
"""
_COLUMNS = "| setting | type | default | allowed | change | what it does |\n|---|---|---|---|---|---|\n"
_UNLIMITED = {INT_MAX, LONG_MAX}


def configuration_page() -> str:
    sections = [_introduction(), _differences(), _fast_failover()]
    sections += [_section(title, rows) for title, rows in BROKER_SECTIONS.items()]
    sections += [_topic_section(), _group_section()]
    return "\n".join(sections)


def _introduction() -> str:
    aliases = ", ".join(f"`{alias}` for `{name}`" for alias, name in ALIASES.items())
    return _INTRODUCTION.format(example=environment_name("log.retention.ms"), aliases=aliases)


def _differences() -> str:
    rows = [row for row in BROKER_SETTINGS.values() if row.kafka_default is not None]
    lines = [f"- `{row.name}`: {_value(row.default)} (Kafka: {_value(row.kafka_default)})\n" for row in rows]
    lines.append("- `node.id`, `process.roles`, `controller.listener.names`: need not be set (Kafka: required)\n")
    lines.append("- `log.segment.bytes`, `segment.bytes`: from 14 bytes on (Kafka: from 1 MiB on)\n")
    return "## Where defaults differ from Apache Kafka\n\n" + "".join(lines)


def _fast_failover() -> str:
    return _FAST_FAILOVER.format(lines="".join(f"{name}={value}\n" for name, value in FAST_FAILOVER.items()))


def _section(title: str, rows: Iterable[Setting]) -> str:
    return f"## {title}\n\n{_COLUMNS}" + "".join(_row(row, row.update.value) for row in rows)


def _topic_section() -> str:
    heading = (
        "## Topics\n\nSet with `sskafka topic create -c key=value` or `topic alter`. "
        "A config that the topic does not set follows the broker's setting in the fifth column.\n\n"
    )
    rows = (_row(row, f"`{row.fallbacks[0].name}`" if row.fallbacks else "") for row in TOPIC_SETTINGS.values())
    return heading + _COLUMNS.replace("change", "follows") + "".join(rows)


def _group_section() -> str:
    heading = (
        "## Groups\n\nSettings of single groups: Kafka's `kafka-configs.sh --entity-type groups`, resource type 32 of "
        "IncrementalAlterConfigs. A config that the group does not set follows the broker's setting in the fifth "
        "column; a value must lie between the broker's `min` and `max` settings. Share groups and streams groups are "
        "not supported, so their settings are only stored.\n\n"
    )
    rows = (_row(row, f"`{row.fallbacks[0].name}`" if row.fallbacks else "") for row in GROUP_SETTINGS.values())
    return heading + _COLUMNS.replace("change", "follows") + "".join(rows)


def _row(row: Setting, fifth: str) -> str:
    doc = row.doc + _mark(row)
    allowed = str(row.allowed) if row.allowed else ""
    return f"| `{row.name}` | {row.type.name.lower()} | {_value(row.default)} | {allowed} | {fifth} | {doc} |\n"


def _mark(row: Setting) -> str:
    match row.use:
        case Use.USED:
            return ""
        case Use.REFUSED:
            return f" *Refused unless default: {row.refused_because}.*"
        case Use.NO_EFFECT:
            return f" *No effect: {row.no_effect_because}.*"
        case unknown:
            assert_never(unknown)


def _value(value: Value) -> str:
    text = format_value(value)
    if not text:
        return ""
    return f"`{text}`{_readable(value)}"


def _readable(value: Value) -> str:
    """Return a large number in days, hours or mebibytes, if it is a multiple of that unit."""
    if isinstance(value, bool) or not isinstance(value, int) or value in _UNLIMITED:
        return ""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (2**30, "GiB"), (2**20, "MiB")):
        if value >= size and value % size == 0:
            return f" ({value // size} {unit})"
    return ""
