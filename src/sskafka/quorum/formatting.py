"""Format the log directories of a node and describe them, for `sskafka storage`.

Formatting writes meta.properties into every directory and bootstrap.checkpoint into the one with the metadata log. The
cluster id is the one on the command line, or cluster.id, or is derived from the voters, so that all nodes of a new
cluster have the same.
"""

import os
from collections.abc import Sequence
from dataclasses import field
from hashlib import sha256

from sskafka.metadata.controller_result import RandomBytes
from sskafka.metadata.features import (
    ELR_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION_NAMES,
    new_cluster_levels,
)
from sskafka.metadata.record_codec import decode_record
from sskafka.metadata.records import RESOURCE_BROKER, ConfigRecord, FeatureLevelRecord, MetadataRecord
from sskafka.model.ids import METADATA_TOPIC_ID, ZERO_UUID, Uuid, uuid_text
from sskafka.model.settings import Settings
from sskafka.model.values import structure
from sskafka.quorum.snapshots import BOOTSTRAP_FILE, read_snapshot, write_bootstrap
from sskafka.storage.broker_directory import LOCK_FILE
from sskafka.storage.disk import Disk
from sskafka.storage.errors import LogDirectoryError
from sskafka.storage.meta_properties import (
    MetaProperties,
    check_meta_properties,
    read_meta_properties,
    write_meta_properties,
)


@structure
class FormatReport:
    formatted: list[str] = field(default_factory=list)
    already_formatted: list[str] = field(default_factory=list)
    cluster_id: str = ""
    metadata_version: str = ""
    unusable: list[str] = field(default_factory=list)
    """Errors of the disk, if unusable directories are tolerated."""


@structure
class StorageInfo:
    found: dict[str, MetaProperties] = field(default_factory=dict)
    unformatted: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def random_uuid(random: RandomBytes) -> Uuid:
    """Return a random id that is not reserved and whose text does not begin with a dash."""
    while True:
        uuid = random(16)
        is_reserved = uuid[:15] == bytes(15) or uuid in {ZERO_UUID, METADATA_TOPIC_ID}
        if not is_reserved and not uuid_text(uuid).startswith("-"):
            return uuid


def cluster_id_for(settings: Settings, random: RandomBytes) -> str:
    """Return cluster.id, or an id derived from the configured voters, or a random one for a node without them."""
    if settings["cluster.id"]:
        return str(settings["cluster.id"])
    voters = settings.voters
    if not voters:
        return uuid_text(random_uuid(random))
    text = ",".join(f"{voter.id}@{voter.host}:{voter.port}" for voter in sorted(voters))
    digest = bytearray(sha256(text.encode()).digest()[:16])
    digest[0] &= 0x7F  # so that the text does not begin with a dash
    return uuid_text(bytes(digest))


def new_meta_properties(settings: Settings, cluster_id: str, random: RandomBytes) -> MetaProperties:
    return MetaProperties(
        cluster_id=cluster_id,
        node_id=settings["node.id"],
        directory_id=random_uuid(random),
        partition_base=settings["log.dir.partition.base"],
    )


def all_directories(settings: Settings) -> list[str]:
    return list(dict.fromkeys([*settings.data_directories, settings.metadata_directory]))


def format_storage(
    disk: Disk,
    settings: Settings,
    random: RandomBytes,
    now_ms: int,
    *,
    cluster_id: str | None = None,
    metadata_version: int = LATEST_METADATA_VERSION,
    ignore_formatted: bool = False,
    skip_unusable: bool = False,
    first_records: Sequence[MetadataRecord] = (),
) -> FormatReport:
    """Format directories. Raises LogDirectoryError if one is already formatted, unless `ignore_formatted`.

    With `skip_unusable`, a directory that cannot be used is skipped; opening the log directories then decides about it.
    `first_records` follow the levels of the features in a new cluster."""
    report = FormatReport(metadata_version=METADATA_VERSION_NAMES[metadata_version])
    if skip_unusable:
        report.unusable = [path for path in all_directories(settings) if not _is_usable(disk, path)]
    if settings.metadata_directory in report.unusable:
        return report
    wanted = [path for path in all_directories(settings) if path not in report.unusable]
    found = {path: meta for path in wanted if (meta := read_meta_properties(disk, path))}
    if found and not ignore_formatted:
        raise LogDirectoryError(f"{', '.join(found)}: already formatted; --ignore-formatted leaves it as it is")
    report.already_formatted = list(found)
    requested = cluster_id or settings["cluster.id"] or None
    report.cluster_id = _agreed_cluster_id(requested, found) or cluster_id_for(settings, random)
    metas = {path: new_meta_properties(settings, report.cluster_id, random) for path in wanted if path not in found}
    check_meta_properties(found | metas, settings["node.id"], settings["log.dir.partition.base"])
    try:
        records = [*feature_records(new_cluster_levels(metadata_version)), *first_records]
        _write(disk, settings, metas, records, now_ms)
    except OSError as error:
        raise LogDirectoryError(f"cannot format: {error}") from error
    report.formatted = list(metas)
    return report


def _is_usable(disk: Disk, path: str) -> bool:
    """Return whether the directory can be listed and its lock file can be written."""
    try:
        disk.make_directory(path)
        disk.entries(path)
        disk.open(os.path.join(path, LOCK_FILE), create=True).close()
    except OSError:
        return False
    return True


def _write(
    disk: Disk, settings: Settings, metas: dict[str, MetaProperties], records: list[MetadataRecord], now_ms: int
) -> None:
    """Write the bootstrap file, then meta.properties, which marks the directory as formatted."""
    for path in metas:
        disk.make_directory(path)
    if settings.metadata_directory in metas:
        write_bootstrap(disk, settings.metadata_directory, records, now_ms)
    for path, meta in metas.items():
        write_meta_properties(disk, path, meta)


def _agreed_cluster_id(requested: str | None, found: dict[str, MetaProperties]) -> str | None:
    """Return the cluster id that was asked for or found: directories that are added to a node join its cluster."""
    existing = {meta.cluster_id for meta in found.values() if meta.cluster_id}
    if requested is not None and existing - {requested}:
        raise LogDirectoryError(
            f"the log directories belong to cluster {', '.join(existing)}, not to {requested}. "
            "Correct log.dirs, or restore meta.properties"
        )
    return requested or next(iter(existing), None)


def storage_info(disk: Disk, settings: Settings) -> StorageInfo:
    info = StorageInfo()
    for path in all_directories(settings):
        try:
            meta = read_meta_properties(disk, path) if disk.exists(path) else None
        except LogDirectoryError as error:
            info.problems.append(str(error))
            continue
        if meta is None:
            info.unformatted.append(path)
        else:
            info.found[path] = meta
    try:
        check_meta_properties(info.found, settings["node.id"], settings["log.dir.partition.base"])
    except LogDirectoryError as error:
        info.problems.append(str(error))
    return info


def feature_records(levels: dict[str, int]) -> list[MetadataRecord]:
    """Return the first records of a new cluster: the levels of its features.

    They come from `bootstrap.checkpoint` if formatting wrote that file. Otherwise the latest levels are used."""
    return [FeatureLevelRecord(name, level) for name, level in levels.items()]


def bootstrap_records(disk: Disk, directory: str, settings: Settings) -> list[MetadataRecord]:
    path = os.path.join(directory, BOOTSTRAP_FILE)
    if disk.exists(path):
        stored = read_snapshot(disk, path)
        records = [decode_record(item.record.value or b"") for item in stored if not item.is_control]
    else:
        records = feature_records(new_cluster_levels())
    return records + _cluster_wide_min_insync(records, settings)


def _cluster_wide_min_insync(records: list[MetadataRecord], settings: Settings) -> list[MetadataRecord]:
    """Return the record of the cluster-wide min.insync.replicas, which eligible leader replicas depend on."""
    uses_elr = any(isinstance(item, FeatureLevelRecord) and item.name == ELR_VERSION for item in records)
    if not uses_elr:
        return []
    return [ConfigRecord(RESOURCE_BROKER, "", "min.insync.replicas", str(settings["min.insync.replicas"]))]
