"""`partition.metadata`: the id of the topic to which a partition directory belongs. Topic names can be reused.

version: 0
topic_id: MLJkjvV9QgCNVlyoYSMqzQ
"""

import os

from sskafka.model.ids import Uuid, parse_uuid, uuid_text
from sskafka.storage.disk import Disk, read_file, replace_file
from sskafka.storage.errors import CorruptFileError, is_not_regular_file, next_step
from sskafka.storage.sync_gate import RewrittenFile

FILE_NAME = "partition.metadata"

_NEXT_STEP = "restore it from a copy, or remove it if the directory is that of the current topic"


def read_topic_id(disk: Disk, directory: str) -> Uuid | None:
    """Return the topic id, or None if there is no file. The base64 may be padded."""
    path = os.path.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    try:
        lines = read_file(disk, path).decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line.strip())
        version, topic_id = fields["version"].strip(), parse_uuid(fields["topic_id"].strip())
    except (ValueError, KeyError) as error:
        raise CorruptFileError(f"{path} cannot be read: {error}; {_NEXT_STEP}") from error
    except OSError as error:
        if not is_not_regular_file(error):
            raise
        raise CorruptFileError(f"{path} cannot be read: {error.strerror}{next_step(error)}") from error
    if version != "0":
        raise CorruptFileError(f"{path} has version {version!r}, only 0 is known; {_NEXT_STEP}")
    return topic_id


class UnsavedTopicId(RewrittenFile):
    """The id of a log that has no file yet, written when the object is synced."""

    __slots__ = ("_directory", "_disk", "_topic_id")

    def __init__(self, disk: Disk, directory: str, topic_id: Uuid) -> None:
        self._disk = disk
        self._directory = directory
        self._topic_id = topic_id

    def sync(self) -> None:
        write_topic_id(self._disk, self._directory, self._topic_id)


def write_topic_id(disk: Disk, directory: str, topic_id: Uuid) -> None:
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    replace_file(disk, os.path.join(directory, FILE_NAME), text.encode())
