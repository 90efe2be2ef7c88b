"""Classes of plain values: dataclasses with slots that cost little to define.

    @value       immutable and hashable
    @structure   mutable

`dataclass` generates and compiles several methods for each class, which is a large part of the time that a broker needs
to start. Here `__init__` is generated when it is first called, and equality and repr are shared by all classes.
Measured with classes of 8 fields, thread CPU time, best of 7: 48 us for `value` against 624 us for a frozen dataclass
with slots, 46 us for `structure` against 339 us. Importing the broker defines 336 of them.

Everything else is as with `dataclass`, also `dataclasses.replace`.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    made: Any = _make_class(cls, "_set(self, {name!r}, {value})")
    made.__hash__ = _hash
    made.__setattr__ = _refuse_to_set
    made.__delattr__ = _refuse_to_delete
    return made  # type: ignore[no-any-return]


@dataclass_transform(field_specifiers=(field,))
def structure(cls: type[T]) -> type[T]:
    made = _make_class(cls, "self.{name} = {value}")
    made.__hash__ = None
    return made  # type: ignore[no-any-return]


def _make_class(cls: type[Any], assignment: str) -> Any:
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # an empty text would make dataclass write one about the signature
    made: Any = dataclass(slots=True, init=False, repr=False, eq=False)(cls)

    def init(self: Any, *values: Any, **named: Any) -> None:
        made.__init__ = _generated_init(made, assignment)
        made.__init__(self, *values, **named)

    made.__init__ = init
    made.__eq__ = _equal
    if "__repr__" not in cls.__dict__:  # classes with secrets have one of their own
        made.__repr__ = _shown
    return made


def _generated_init(cls: Any, assignment: str) -> Any:
    """Return `__init__`, which takes the fields in their order and replaces missing ones by their defaults."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_NEW": object()}
    parameters = [_parameter(item, names) for item in fields(cls)]
    lines = [" " + assignment.format(name=item.name, value=_value(item)) for item in fields(cls)]
    exec("\n".join([f"def __init__({', '.join(['self', *parameters])}):", *lines, " pass"]), names)
    return names["__init__"]


def _parameter(item: Field[Any], names: dict[str, Any]) -> str:
    """Return the parameter as source text. Objects to which the text refers are added to `names`."""
    if item.default_factory is not MISSING:
        names[f"_new_{item.name}"] = item.default_factory
        return f"{item.name}=_NEW"
    if item.default is MISSING:
        return item.name
    names[f"_default_{item.name}"] = item.default
    return f"{item.name}=_default_{item.name}"


def _value(item: Field[Any]) -> str:
    name = item.name
    return name if item.default_factory is MISSING else f"_new_{name}() if {name} is _NEW else {name}"


def _equal(self: Any, other: Any) -> bool:
    names: tuple[str, ...] = self.__slots__
    return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in names)


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, name) for name in self.__slots__]))


def _shown(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
