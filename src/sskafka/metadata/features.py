"""Features: the levels that the cluster has finalized, and the levels that this software supports.

metadata.version is the version of the metadata log's format. The levels below are Kafka's, each with the first release
that supports it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

IN_CONTROLLED_SHUTDOWN = 7  # 3.3-IV3
ZK_MIGRATION = 8  # 3.4-IV0
METADATA_TRANSACTIONS = 14  # 3.6-IV2
CONTROLLER_REGISTRATIONS = 15  # 3.7-IV0
DIRECTORY_ASSIGNMENT = 17  # 3.7-IV2
ELIGIBLE_LEADER_REPLICAS = 23  # 4.0-IV1
CORDONED_DIRECTORIES = 30  # 4.3-IV0
LATEST_METADATA_VERSION = 30  # 4.3-IV0

METADATA_FORMAT_LEVELS = (
    IN_CONTROLLED_SHUTDOWN,
    ZK_MIGRATION,
    METADATA_TRANSACTIONS,
    CONTROLLER_REGISTRATIONS,
    DIRECTORY_ASSIGNMENT,
    ELIGIBLE_LEADER_REPLICAS,
    CORDONED_DIRECTORIES,
)
"""Levels that introduced new records or fields."""

METADATA_VERSION_NAMES = MappingProxyType(
    {
        7: "3.3-IV3",
        8: "3.4-IV0",
        9: "3.5-IV0",
        10: "3.5-IV1",
        11: "3.5-IV2",
        12: "3.6-IV0",
        13: "3.6-IV1",
        14: "3.6-IV2",
        15: "3.7-IV0",
        16: "3.7-IV1",
        17: "3.7-IV2",
        18: "3.7-IV3",
        19: "3.7-IV4",
        20: "3.8-IV0",
        21: "3.9-IV0",
        22: "4.0-IV0",
        23: "4.0-IV1",
        24: "4.0-IV2",
        25: "4.0-IV3",
        26: "4.1-IV0",
        27: "4.1-IV1",
        28: "4.2-IV0",
        29: "4.2-IV1",
        30: "4.3-IV0",
    }
)


class FeatureRange(NamedTuple):
    minimum: int
    maximum: int


SUPPORTED_FEATURES: Mapping[str, FeatureRange] = MappingProxyType(
    {
        METADATA_VERSION: FeatureRange(7, LATEST_METADATA_VERSION),
        KRAFT_VERSION: FeatureRange(0, 1),
        TRANSACTION_VERSION: FeatureRange(0, 2),
        GROUP_VERSION: FeatureRange(0, 1),
        ELR_VERSION: FeatureRange(0, 1),
        SHARE_VERSION: FeatureRange(0, 0),
        STREAMS_VERSION: FeatureRange(0, 0),
    }
)
"""Supported levels. There are no share groups and no streams groups."""

ACCEPTED_FEATURES: Mapping[str, FeatureRange] = MappingProxyType(
    {**SUPPORTED_FEATURES, SHARE_VERSION: FeatureRange(0, 1), STREAMS_VERSION: FeatureRange(0, 1)}
)
"""Finalized levels with which this software can join a cluster.

Clusters formatted by Apache Kafka have share and streams groups enabled; SSKafka brokers serve everything else there.
"""

NEW_CLUSTER_LEVELS: Mapping[str, int] = MappingProxyType(
    {
        METADATA_VERSION: LATEST_METADATA_VERSION,
        ELR_VERSION: 1,
        GROUP_VERSION: 1,
        TRANSACTION_VERSION: 2,
    }
)
"""Finalized levels of a new cluster, in the order of their records; kraft.version is in control records instead."""

_FIRST_USED_IN = {
    METADATA_VERSION: 0,
    GROUP_VERSION: 22,  # 4.0-IV0
    TRANSACTION_VERSION: 24,  # 4.0-IV2
    ELR_VERSION: 26,  # 4.1-IV0
}


def parse_metadata_version(text: str) -> int:
    """Return the level of a release such as 4.0-IV3 or 4.0, the format of `--release-version`."""
    for level, name in sorted(METADATA_VERSION_NAMES.items(), reverse=True):
        if text in {name, name.partition("-")[0]}:
            return level
    newest = METADATA_VERSION_NAMES[LATEST_METADATA_VERSION]
    raise ValueError(f"unknown release {text!r}; known are {METADATA_VERSION_NAMES[7]} to {newest}")


def new_cluster_levels(metadata_version: int = LATEST_METADATA_VERSION) -> dict[str, int]:
    """Return the finalized features of a new cluster at `metadata_version`; earlier versions have fewer features."""
    known = {name: level for name, level in NEW_CLUSTER_LEVELS.items() if _FIRST_USED_IN[name] <= metadata_version}
    return known | {METADATA_VERSION: metadata_version}
