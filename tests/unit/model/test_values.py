from dataclasses import FrozenInstanceError, field, fields

import pytest

from sskafka.model.values import structure, value


@value
class Place:
    topic: str
    partition: int = 0


@structure
class Basket:
    owner: str = "nobody"
    items: list[int] = field(default_factory=list)

    def count(self) -> int:
        return len(self.items)


def test_a_value_takes_its_fields_in_order_or_by_name() -> None:
    assert Place("orders", 3) == Place(partition=3, topic="orders")
    assert Place("orders").partition == 0


def test_a_field_without_a_default_must_be_given() -> None:
    with pytest.raises(TypeError, match="topic"):
        Place()  # type: ignore[call-arg]


def test_a_value_cannot_be_changed_and_can_be_a_key() -> None:
    place = Place("orders")
    with pytest.raises(FrozenInstanceError):
        place.topic = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del place.topic
    assert {place: 1}[Place("orders")] == 1


def test_values_of_another_class_are_never_equal() -> None:
    @value
    class Other:
        topic: str
        partition: int = 0

    assert Place("orders") != Other("orders")


def test_every_structure_gets_a_list_of_its_own() -> None:
    one, other = Basket(), Basket("me")
    one.items.append(1)
    assert (one.count(), other.count()) == (1, 0)
    assert one != other
    with pytest.raises(TypeError):
        hash(one)


def test_they_are_dataclasses_with_slots_that_show_their_fields() -> None:
    assert [item.name for item in fields(Place)] == ["topic", "partition"]  # type: ignore[arg-type]
    assert repr(Place("orders")) == "Place(topic='orders', partition=0)"
    with pytest.raises(AttributeError):
        Basket().owners = "x"  # type: ignore[attr-defined]
    match Place("orders", 1):
        case Place(topic, 1):
            assert topic == "orders"
