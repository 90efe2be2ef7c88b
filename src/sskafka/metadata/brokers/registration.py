"""A registered broker. A fenced broker is registered, but leads no partitions and is not listed in client metadata."""

from collections.abc import Mapping
from dataclasses import replace

from sskafka.metadata.features import FeatureRange
from sskafka.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from sskafka.model.ids import ZERO_UUID, Uuid
from sskafka.model.values import value

_UNASSIGNED_DIRECTORIES: tuple[Uuid, ...] = (ZERO_UUID, bytes(15) + b"\x02")
"""The directory ids UNASSIGNED, and MIGRATING of logs from before directory ids."""


@value
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
    """Directories that receive no new replicas."""

    @property
    def takes_new_replicas(self) -> bool:
        """Whether the broker has a directory that is not cordoned. Brokers of old versions report no directories."""
        return not self.directories or not set(self.directories) <= set(self.cordoned)

    @property
    def is_active(self) -> bool:
        """Whether the broker may be in the ISR, lead partitions, and be listed in client metadata."""
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
        """Return whether the broker can serve a replica in `directory`. Old brokers report no directories."""
        return directory in _UNASSIGNED_DIRECTORIES or not self.directories or directory in self.directories

    def endpoint(self, listener_name: str) -> BrokerEndpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener_name), None)
