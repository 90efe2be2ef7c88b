"""The ACLs by resource, so that a decision reads only those that apply to one resource.

    literal    (type, name)  -> principal -> bindings       also the wildcard, under the name `*`
    prefixed   (type, prefix) -> principal -> bindings      with the lengths of the prefixes of each type

A lookup tries the name, the wildcard, and the beginnings of the name that have the length of a known prefix.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from sskafka.metadata.acls.binding import AclBinding
from sskafka.model.acl import WILDCARD, PatternType

ByPrincipal = dict[str, list[AclBinding]]


class AclIndex:
    def __init__(self) -> None:
        self._literal: dict[tuple[int, str], ByPrincipal] = {}
        self._prefixed: dict[tuple[int, str], ByPrincipal] = {}
        self._prefix_lengths: dict[int, Counter[int]] = {}

    def add(self, binding: AclBinding) -> None:
        table = self._table_of(binding)
        key = binding.resource_type, binding.resource_name
        if key not in table:
            table[key] = {}
            if table is self._prefixed:
                self._prefix_lengths.setdefault(binding.resource_type, Counter())[len(binding.resource_name)] += 1
        table[key].setdefault(binding.principal, []).append(binding)

    def remove(self, binding: AclBinding) -> None:
        table = self._table_of(binding)
        key = binding.resource_type, binding.resource_name
        bindings = table[key][binding.principal]
        bindings.remove(binding)
        if not bindings:
            del table[key][binding.principal]
        if not table[key]:
            del table[key]
            if table is self._prefixed:
                self._forget_length(binding.resource_type, len(binding.resource_name))

    def of_resource(self, resource_type: int, name: str) -> Iterator[Mapping[str, list[AclBinding]]]:
        """Yield the bindings, by principal, of each pattern that applies to the resource."""
        literal, prefixed = self._literal, self._prefixed
        for key in ((resource_type, name), (resource_type, WILDCARD)):
            if key in literal:
                yield literal[key]
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                found = prefixed.get((resource_type, name[:length]))
                if found is not None:
                    yield found

    def of_type(self, resource_type: int, principal: str) -> Iterator[AclBinding]:
        """Yield the bindings of a principal for resources of a type."""
        for table in (self._literal, self._prefixed):
            for (known_type, _), by_principal in table.items():
                if known_type == resource_type:
                    yield from by_principal.get(principal, ())

    def _table_of(self, binding: AclBinding) -> dict[tuple[int, str], ByPrincipal]:
        return self._prefixed if binding.pattern_type == PatternType.PREFIXED else self._literal

    def _forget_length(self, resource_type: int, length: int) -> None:
        lengths = self._prefix_lengths[resource_type]
        lengths[length] -= 1
        if not lengths[length]:
            del lengths[length]
