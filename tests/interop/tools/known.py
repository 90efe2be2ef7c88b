"""Commands whose output differs, with the reason."""

from tools.commands import Call

KNOWN: dict[tuple[str, str], str] = {}


def reason_for(call: Call) -> str | None:
    return next((reason for (tool, part), reason in KNOWN.items() if tool == call.tool and part in call.arguments), None)
