"""A broker's effective settings: its static settings, overridden by the dynamic configs in the metadata."""

from sskafka.metadata.image import ClusterImage
from sskafka.model.settings import Settings


def effective_settings(settings: Settings, image: ClusterImage) -> Settings:
    this_broker = image.broker_configs(settings["node.id"])
    all_brokers = image.broker_default_configs()
    if not this_broker and not all_brokers:
        return settings
    return settings.with_dynamic(this_broker, all_brokers)
