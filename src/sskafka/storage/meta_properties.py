"""`meta.properties`: the node and the cluster to which a log directory belongs.

    version=1
    cluster.id=4L6g3nShT-eMCtK--X86sw
    node.id=1
    directory.id=Xb7dRVqPTU2pnOJ-dAzhKg
    log.dir.partition.base=1                SSKafka only: present if directory names do not count from 0

Version 0, written by older brokers, has `broker.id` instead of `node.id`. Unknown keys are kept.
"""

import os
from collections.abc import Mapping
from dataclasses import field

from sskafka.model.ids import Uuid, parse_uuid, uuid_text
from sskafka.model.properties import PropertiesError, format_properties, parse_properties
from sskafka.model.values import value
from sskafka.storage.disk import Disk, read_file, replace_file
from sskafka.storage.errors import CorruptFileError, LogDirectoryError, is_not_regular_file, next_step

FILE_NAME = "meta.properties"
_VERSION, _CLUSTER_ID, _NODE_ID, _BROKER_ID, _DIRECTORY_ID, _PARTITION_BASE = (
    "version",
    "cluster.id",
    "node.id",
    "broker.id",
    "directory.id",
    "log.dir.partition.base",
)
_KNOWN = {_VERSION, _CLUSTER_ID, _NODE_ID, _BROKER_ID, _DIRECTORY_ID, _PARTITION_BASE}


@value
class MetaProperties:
    cluster_id: str | None
    node_id: int | None
    directory_id: Uuid | None = None
    partition_base: int = 0
    others: Mapping[str, str] = field(default_factory=dict)


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """Return the properties, or None if the directory has not been formatted."""
    path = os.path.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    try:
        return _from_properties(parse_properties(read_file(disk, path).decode()))
    except (ValueError, PropertiesError) as error:
        raise CorruptFileError(f"{path} cannot be read: {error}; restore it from a copy") from error
    except OSError as error:
        if not is_not_regular_file(error):
            raise
        raise CorruptFileError(f"{path} cannot be read: {error.strerror}{next_step(error)}") from error


def write_meta_properties(disk: Disk, directory: str, meta: MetaProperties) -> None:
    fields: dict[str, str | None] = {
        _VERSION: "1",
        _CLUSTER_ID: meta.cluster_id,
        _NODE_ID: None if meta.node_id is None else str(meta.node_id),
        _DIRECTORY_ID: None if meta.directory_id is None else uuid_text(meta.directory_id),
        _PARTITION_BASE: str(meta.partition_base) if meta.partition_base else None,
        **meta.others,
    }
    text = format_properties({key: value for key, value in fields.items() if value is not None})
    replace_file(disk, os.path.join(directory, FILE_NAME), text.encode())


def check_meta_properties(found: Mapping[str, MetaProperties], node_id: int, partition_base: int) -> None:
    """Check that the directories belong to this node and to one cluster, and use the configured partition base."""
    clusters = {meta.cluster_id for meta in found.values() if meta.cluster_id is not None}
    if len(clusters) > 1:
        raise LogDirectoryError(
            f"the log directories belong to different clusters: {', '.join(sorted(clusters))}. "
            f"Remove the directories of other clusters from log.dirs, or restore {FILE_NAME}"
        )
    ids = [meta.directory_id for meta in found.values() if meta.directory_id is not None]
    if len(ids) != len(set(ids)):
        raise LogDirectoryError(
            f"two log directories have the same directory.id in {FILE_NAME}: one is a copy of the other. "
            "Remove the copy from log.dirs"
        )
    for path, meta in found.items():
        if meta.node_id is not None and meta.node_id != node_id:
            raise LogDirectoryError(
                f"{path} belongs to node {meta.node_id}, but this is node {node_id}. "
                f"Correct node.id or log.dirs, or restore {FILE_NAME}"
            )
        if meta.partition_base != partition_base:
            raise LogDirectoryError(
                f"{path} has {_PARTITION_BASE}={meta.partition_base} in {FILE_NAME}, which cannot change to "
                f"{partition_base}. Set the former value, or restore {FILE_NAME}"
            )


def _from_properties(properties: Mapping[str, str]) -> MetaProperties:
    if not properties.keys() & _KNOWN:
        raise ValueError("the cluster, node or directory id is missing")
    version = properties.get(_VERSION, "0").strip()
    if version not in {"0", "1"}:
        raise ValueError(f"version {version} is not known")
    node_id = properties.get(_NODE_ID, properties.get(_BROKER_ID))
    directory_id = properties.get(_DIRECTORY_ID)
    partition_base = int(properties.get(_PARTITION_BASE, "0"))
    if partition_base not in {0, 1}:
        raise ValueError(f"{_PARTITION_BASE}={partition_base} is neither 0 nor 1")
    return MetaProperties(
        cluster_id=properties.get(_CLUSTER_ID),
        node_id=None if node_id is None else int(node_id),
        directory_id=None if directory_id is None else parse_uuid(directory_id.strip()),
        partition_base=partition_base,
        others={key: value for key, value in properties.items() if key not in _KNOWN},
    )
