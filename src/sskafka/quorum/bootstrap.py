"""The first records of a new cluster: the levels of its features.

They come from `bootstrap.checkpoint` where formatting left one, or else are those of a cluster made today.
"""

import os

from sskafka.metadata.features import ELR_VERSION, new_cluster_levels
from sskafka.metadata.record_codec import decode_record
from sskafka.metadata.records import RESOURCE_BROKER, ConfigRecord, FeatureLevelRecord, MetadataRecord
from sskafka.model.settings import Settings
from sskafka.quorum.snapshots import BOOTSTRAP_FILE, read_snapshot
from sskafka.storage.disk import Disk


def feature_records(levels: dict[str, int]) -> list[MetadataRecord]:
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
    """Eligible leader replicas depend on min.insync.replicas, so with them it is a matter of the whole cluster."""
    uses_elr = any(isinstance(item, FeatureLevelRecord) and item.name == ELR_VERSION for item in records)
    if not uses_elr:
        return []
    return [ConfigRecord(RESOURCE_BROKER, "", "min.insync.replicas", str(settings["min.insync.replicas"]))]
