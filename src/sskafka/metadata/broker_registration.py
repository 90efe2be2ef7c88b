"""A broker as the cluster's metadata knows it. A fenced one is registered, but neither leads nor is told to clients."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sskafka.metadata.features import FeatureRange
from sskafka.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from sskafka.model.ids import ZERO_UUID, Uuid

_NOT_YET_PLACED: tuple[Uuid, ...] = (ZERO_UUID, bytes(15) + b"\x02")
"""Unassigned, and from a log that knew no directories."""


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[BrokerEndpoint, ...]
    rack: str | None
    features: Mapping[str, FeatureRange]
    directories: tuple[Uuid, ...]
    fenced: bool
    in_controlled_shutdown: bool
    cordoned: tuple[Uuid, ...] = ()
    """Directories that get no new replicas."""

    @property
    def takes_new_replicas(self) -> bool:
        """Whether it has a directory that is not cordoned; brokers of old versions name no directories."""
        return not self.directories or not set(self.directories) <= set(self.cordoned)

    @property
    def is_active(self) -> bool:
        """Whether it may be in sync, lead, and be told to clients."""
        return not self.fenced and not self.in_controlled_shutdown

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> "BrokerRegistration":
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(record.end_points),
            rack=record.rack,
            features={
                item.name: FeatureRange(item.min_supported_version, item.max_supported_version)
                for item in record.features
            },
            directories=tuple(record.log_dirs),
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            cordoned=tuple(record.cordoned_log_dirs or ()),
        )

    def changed_by(self, record: BrokerRegistrationChangeRecord) -> "BrokerRegistration":
        return replace(
            self,
            fenced={FENCE: True, UNFENCE: False}.get(record.fenced, self.fenced),
            in_controlled_shutdown=self.in_controlled_shutdown or record.in_controlled_shutdown == 1,
            directories=tuple(record.log_dirs) or self.directories,
            cordoned=self.cordoned if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )

    def has_directory(self, directory: Uuid) -> bool:
        """Whether a replica that is in `directory` can be served; brokers of old versions name no directories."""
        return directory in _NOT_YET_PLACED or not self.directories or directory in self.directories

    def endpoint(self, listener_name: str) -> BrokerEndpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener_name), None)
