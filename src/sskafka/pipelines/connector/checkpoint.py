"""The parts of Spark's checkpoint that the sink reads: the id of the query, and the offsets that a batch covers.

    <checkpoint>/metadata           {"id": "..."}    the id of the query, as long as the checkpoint exists
    <checkpoint>/offsets/<batch>    v1 / metadata of the batch / offsets of each source, one line each

Local paths are read directly, others through Arrow's file systems. A file that cannot be read is not an error: Spark
may have access to a file system that this process cannot reach. The caller treats its content as unknown.
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
    """Return the location in a normalized form that can be compared; empty if it is not known.

    Tasks on other hosts call this as well, so the file system is not used, and a relative path counts as unknown."""
    if not location:
        return ""
    path = local_path(location)
    if path is None:
        return location.rstrip("/")
    return f"file:{os.path.normpath(path)}" if path.is_absolute() else ""


def query_id_of(location: str) -> str | None:
    """Return the id that Spark gave the query when it created the checkpoint."""
    text = read_checkpoint(location, "metadata")
    try:
        return None if text is None else str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError):
        return None


def offsets_digest(location: str, batch: int) -> str:
    """Return a digest of the offsets that a batch covers; empty if they cannot be read.

    Two batches with the same number but other offsets have different digests."""
    text = read_checkpoint(location, f"offsets/{batch}")
    if text is None:
        return ""
    offsets = text.split("\n")[_LINES_BEFORE_OFFSETS:]
    return hashlib.sha256("\n".join(offsets).strip().encode()).hexdigest()[:32]


def local_path(location: str) -> Path | None:
    """Return the path of a location on this machine; None if it is a URL of another file system."""
    parts = urlsplit(location)
    if "://" not in location and parts.scheme != "file":
        return Path(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def read_checkpoint(location: str, name: str) -> str | None:
    """Return the text of a file of the checkpoint; None if it does not exist or cannot be read."""
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
        logger.info("the checkpoint %s cannot be read from this process: %s", location, error)
        return None
