"""Coordinators are created on demand, and receive no metadata from before this broker was in service."""

import errno
from collections.abc import Iterator

import pytest

from sskafka.broker.coordinators import LazyCoordinator
from sskafka.metadata.delta import MetadataDelta
from sskafka.metadata.image import ClusterImage, TopicImage
from sskafka.model.counters import Sample


class Heard:
    def __init__(self) -> None:
        self.deltas: list[MetadataDelta] = []

    def metadata_changed(self, delta: MetadataDelta, image: ClusterImage) -> None:
        self.deltas.append(delta)

    def samples(self) -> Iterator[Sample]:
        yield Sample("deltas", (), len(self.deltas))

    def stop(self) -> None:
        self.deltas.clear()


class Broker:
    def __init__(self) -> None:
        self.is_in_service = False
        self.old_images: list[ClusterImage] = []
        self.made: list[Heard] = []
        self.need: LazyCoordinator[Heard] = LazyCoordinator(
            "__state", self.make, lambda image: self.is_in_service and image not in self.old_images
        )

    def make(self) -> Heard:
        self.made.append(Heard())
        return self.made[-1]


def image_with(*names: str) -> ClusterImage:
    image = ClusterImage()
    for name in names:
        topic = TopicImage(name, name.encode().ljust(16), {})
        image.topics_by_name[name] = image.topics_by_id[topic.topic_id] = topic
    return image


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_nothing_is_made_without_need(broker: Broker) -> None:
    broker.is_in_service = True
    broker.need.metadata_changed(MetadataDelta(), image_with("orders"))
    assert broker.made == []
    assert list(broker.need.samples()) == []


def test_what_a_start_replays_is_told_as_it_is_in_the_end(broker: Broker) -> None:
    """It may contain deletions of topics that have been created again since."""
    image = image_with("__state", "orders")
    deletion = MetadataDelta(topics_deleted={b"old": image.topics_by_name["orders"]})
    broker.need.metadata_changed(MetadataDelta.from_empty(image), image)
    broker.need.metadata_changed(deletion, image)
    assert broker.made == []
    broker.is_in_service = True
    broker.need.metadata_changed(MetadataDelta(), image)
    (service,) = broker.made
    (heard,) = service.deltas
    assert not heard.topics_deleted
    broker.need.metadata_changed(deletion, image)
    assert service.deltas[1:] == [deletion]


def test_who_asks_early_gets_a_service_that_knows_of_nothing_yet(broker: Broker) -> None:
    image = image_with("__state")
    broker.need.metadata_changed(MetadataDelta(), image)
    service = broker.need()
    assert service.deltas == []
    broker.need.metadata_changed(MetadataDelta(topics_deleted={b"old": image.topics_by_name["__state"]}), image)
    assert service.deltas == []
    broker.is_in_service = True
    broker.need.metadata_changed(MetadataDelta(), image)
    assert [delta.topics_deleted for delta in service.deltas] == [{}]


def test_what_counts_is_the_metadata_that_is_in_effect(broker: Broker) -> None:
    """The broker may know that it is in service while its replicas are still being put in order."""
    old, new = image_with("__state"), image_with("__state", "orders")
    broker.need.metadata_changed(MetadataDelta(), old)
    broker.old_images, broker.is_in_service = [old], True
    service = broker.need()  # somebody asks just now
    assert service.deltas == []
    deletion = MetadataDelta(topics_deleted={b"old": new.topics_by_name["orders"]})
    broker.need.metadata_changed(deletion, new)
    assert [delta.topics_deleted for delta in service.deltas] == [{}]


def test_an_import_that_lacks_descriptors_is_tried_again(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> Heard:
        raise OSError(errno.EMFILE, "Too many open files")

    broker.is_in_service = True
    broker.need = LazyCoordinator("__state", lacking, lambda image: True)
    image = image_with("__state")
    broker.need.metadata_changed(MetadataDelta.from_empty(image), image)
    with pytest.raises(OSError, match="Too many open files"):
        broker.need()
    monkeypatch.setattr(broker.need, "_make", broker.make)
    broker.need.metadata_changed(MetadataDelta(), image)
    (service,) = broker.made
    assert [set(delta.partitions_changed) for delta in service.deltas] == [set(image.topics_by_id)]
