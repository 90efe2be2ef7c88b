"""What the sink reads of Spark's checkpoint: the query's id, and which offsets a batch covers.

    <checkpoint>/metadata           {"id": "..."}    the query's id, for as long as the checkpoint lives
    <checkpoint>/offsets/<batch>    v1 / metadata of the batch / offsets of each source, a line each

Local paths are read directly, others through Arrow's file systems. What cannot be read is unknown, and not an error:
Spark may reach a file system that this process does not.
"""

import hashlib
import json
import logging
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

logger = logging.getLogger(__name__)

_LINES_BEFORE_OFFSETS = 2


def place_of(location: str) -> str:
    """The location in one spelling, to compare it with another; empty where it is not known.

    Tasks ask this too, on other hosts: nothing is looked up, and a relative path says nothing."""
    if not location:
        return ""
    path = local_path(location)
    if path is None:
        return location.rstrip("/")
    return f"file:{os.path.normpath(path)}" if path.is_absolute() else ""


def query_id_of(location: str) -> str | None:
    """The id that Spark gave the query when it made the checkpoint."""
    text = read_checkpoint(location, "metadata")
    try:
        return None if text is None else str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError):
        return None


def offsets_digest(location: str, batch: int) -> str:
    """Tells two batches of one number apart that cover different offsets; empty where that cannot be read."""
    text = read_checkpoint(location, f"offsets/{batch}")
    if text is None:
        return ""
    offsets = text.split("\n")[_LINES_BEFORE_OFFSETS:]
    return hashlib.sha256("\n".join(offsets).strip().encode()).hexdigest()[:32]


def local_path(location: str) -> Path | None:
    """The path of a location on this machine; None where it is a URL of another file system."""
    parts = urlsplit(location)
    if "://" not in location and parts.scheme != "file":
        return Path(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def read_checkpoint(location: str, name: str) -> str | None:
    """The text of a file of the checkpoint; None where it is not there or cannot be read."""
    if not location:
        return None
    path = local_path(location)
    try:
        return (path / name).read_text(encoding="utf-8") if path is not None else _read_remote(location, name)
    except OSError:
        return None


def _read_remote(location: str, name: str) -> str | None:
    from pyarrow import ArrowInvalid, ArrowNotImplementedError, fs  # noqa: PLC0415  few checkpoints need it

    try:
        system, root = fs.FileSystem.from_uri(location.replace("s3a://", "s3://", 1))
        with system.open_input_stream(f"{root.rstrip('/')}/{name}") as stream:
            return str(stream.read().decode())
    except (ArrowInvalid, ArrowNotImplementedError) as error:
        logger.info("the checkpoint %s is not readable here: %s", location, error)
        return None
