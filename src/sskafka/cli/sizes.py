"""Sizes and durations, as people write and read them."""

import re

from sskafka.cli.usage import UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?(?:/s)?", re.IGNORECASE)


def size_text(size: float) -> str:
    """Return a size for people, e.g. 1.5 GB."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def parse_size(text: str, option: str) -> int:
    """Return the bytes of `500000`, `500KB` or `1.5GB`."""
    parsed = _SIZE.fullmatch(text.strip())
    if parsed is None or float(parsed[1]) == 0:
        raise UsageError(f"{option} {text!r} is not a number of bytes, such as 500000 or 50MB")
    return max(1, int(float(parsed[1]) * _UNITS[parsed[2].lower()]))


def duration_text(seconds: float) -> str:
    """Return a duration for people, e.g. 3 min 20 s."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() else str(number)
