"""Topics and groups by pattern: `orders-*` is a glob, `^orders-\\d+$` a regular expression.

No topic name looks like either. A group may have such a name; then the name itself is meant.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import partial

from sskafka.cli.failures import CommandError
from sskafka.cli.usage import UsageError
from sskafka.client.admin import Admin
from sskafka.client.cluster import Cluster
from sskafka.client.groups import list_groups

_GLOB_MARKS = set("*?[")
_NAME = re.compile(r"[\w.-]+")


def is_pattern(name: str) -> bool:
    return name.startswith("^") or bool(_GLOB_MARKS & set(name))


async def topics_named(
    cluster: Cluster,
    names: Sequence[str],
    regexes: Sequence[str] = (),
    *,
    internal: bool = False,
    missing_ok: bool = False,
) -> list[str]:
    """Return the names, with patterns replaced by the topics that match.

    Raise UnknownTopicError for a name without a topic, CommandError for a pattern without one. `regexes` are patterns
    of Kafka's tools: regular expressions for the whole name. Internal topics match only if `internal` is set or the
    pattern begins like their names."""
    plain = [*names, *(regex for regex in regexes if _NAME.fullmatch(regex))]
    patterns = {regex: f"^(?:{regex})$" for regex in regexes if not _NAME.fullmatch(regex)}
    patterns |= {name: name for name in names if is_pattern(name)}
    chosen = [name for name in plain if not is_pattern(name)]
    if not missing_ok:
        for name in chosen:
            await cluster.retrying(partial(cluster.topic, name))
    known = await Admin(cluster).list_topics(internal=True) if patterns else []
    for name, pattern in patterns.items():
        compiled = compiled_pattern(pattern)
        may_be_internal = internal or name.startswith(("_", "^_"))
        found = [one.name for one in known if compiled.search(one.name) and (may_be_internal or not one.is_internal)]
        if not found and not missing_ok:
            raise no_match(name)
        chosen += found
    return list(dict.fromkeys(chosen))


async def groups_named(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """Return the names, with patterns replaced by the groups that match.

    Raise CommandError for a pattern that matches no group. Other names are returned unchecked."""
    if not any(is_pattern(name) for name in names):
        return list(dict.fromkeys(names))
    known = [group.group_id for group in await list_groups(cluster)]
    chosen: list[str] = []
    for name in names:
        is_name = name in known or not is_pattern(name)
        found = [name] if is_name else matching([name], known)
        if not found:
            raise CommandError(f"no group matches {name!r}", "`sskafka group list` shows the groups")
        chosen += found
    return list(dict.fromkeys(chosen))


def no_match(pattern: str) -> CommandError:
    return CommandError(f"no topic matches {pattern!r}", "`sskafka topic list` shows the topics")


def compiled_pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern if pattern.startswith("^") else translate(pattern))
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from error


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the names that equal or match one of the patterns, or all names if there is no pattern."""
    tests = [compiled_pattern(one) if is_pattern(one) else re.compile(re.escape(one) + r"\Z") for one in patterns]
    return [name for name in names if not tests or any(test.match(name) for test in tests)]
