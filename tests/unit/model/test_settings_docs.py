from dataclasses import fields
from pathlib import Path
from typing import get_args

from docs import generate

from sskafka.model import setting_names
from sskafka.model.group_configs import GROUP_SETTINGS
from sskafka.model.setting import Use
from sskafka.model.settings import Settings
from sskafka.model.settings_docs import configuration_page
from sskafka.model.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS
from sskafka.model.settings_table.group_configs import BOUNDS
from sskafka.storage.log_config import LogConfig

SOURCE = Path(__file__).parents[3] / "src" / "sskafka"
PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_committed_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == configuration_page(), "run: python docs/generate.py"


def test_settings_said_to_be_used_are_named_in_the_code_and_those_without_effect_are_not_read() -> None:
    tables = {*(SOURCE / "model" / "settings_table").iterdir(), generate.SETTING_NAMES}
    files = [path for path in SOURCE.rglob("*.py") if path not in tables]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    named = {name for name in (*BROKER_SETTINGS, *TOPIC_SETTINGS) if f'"{name}"' in code}
    of_logs = {field.name.replace("_", ".") for field in fields(LogConfig)}
    topic_rows = [row for row in TOPIC_SETTINGS.values() if row.use is Use.USED]
    assert [row.name for row in topic_rows if row.name not in named | of_logs] == []
    followed = {fallback.name for row in topic_rows for fallback in row.fallbacks}
    group_rows = [row for row in GROUP_SETTINGS.values() if row.use is Use.USED]
    followed |= {fallback.name for row in group_rows for fallback in row.fallbacks}
    followed |= {name for row in group_rows for name in BOUNDS[row.name] if name is not None}
    spoken_for = [BROKER_SETTINGS[name] for name in followed | named if name in BROKER_SETTINGS]
    followed |= {fallback.name for row in spoken_for for fallback in row.fallbacks}
    used = [row.name for row in BROKER_SETTINGS.values() if row.use is Use.USED]
    assert [name for name in used if name not in named | followed] == []
    unread = [row.name for row in BROKER_SETTINGS.values() if row.use is Use.NO_EFFECT]
    assert [name for name in unread if f'ettings["{name}"]' in code] == []


def test_every_row_says_what_becomes_of_it() -> None:
    rows = [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()]
    for row in rows:
        reasons = (row.refused_because, row.no_effect_because)
        assert (row.use is Use.USED) == (not any(reasons))
        assert not all(reasons), f"{row.name} is refused or without effect, not both"
        assert not any(reason.endswith(".") for reason in reasons), f"{row.name}: the page ends the sentence"


def test_type_checkers_know_the_types_of_the_settings() -> None:
    assert generate.SETTING_NAMES.read_text(encoding="utf-8") == generate.setting_names(), (
        "run: python docs/generate.py"
    )
    settings = Settings.resolve({"log.dirs": "/data"})
    kinds = {"Integer": int, "Boolean": bool, "Float": float, "Text": str, "List": tuple}
    for alias, kind in kinds.items():
        for name in get_args(getattr(setting_names, alias)):
            assert isinstance(settings[name], kind), name
        for name in get_args(getattr(setting_names, f"Optional{alias}", None)):
            assert isinstance(settings[name], kind | None), name
