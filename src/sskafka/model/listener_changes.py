"""Which changes of a broker's listeners are allowed while it runs: Apache Kafka's rules (KIP-226).

Listeners are identified by their names. Listeners with new names are added, and listeners whose names are missing are
removed. A new address of an existing listener is stored and takes effect at the next start, unless server.properties
has an address for that listener. Advertised listeners and controller listeners cannot be removed.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sskafka.model.listeners import Endpoint, parse_protocol_map
from sskafka.model.setting import SettingError

if TYPE_CHECKING:
    from sskafka.model.settings import Settings

LISTENERS: Final = "listeners"
PROTOCOL_MAP: Final = "listener.security.protocol.map"


def check_listener_changes(current: "Settings", wanted: "Settings") -> None:
    """Raise SettingError if a running broker cannot change its listeners from `current` to `wanted`."""
    if all(current[name] == wanted[name] for name in (LISTENERS, PROTOCOL_MAP)):
        return
    names = _names(wanted.listeners)  # raises SettingError if they cannot be read
    _check_controllers(_names(current.controller_listeners), _names(wanted.controller_listeners), wanted)
    _check_protocols(names - _names(current.listeners), wanted)
    advertised = _names(current.advertised_listeners)
    if not advertised <= names:
        problem = (
            f"Advertised listeners '{_listed(advertised)}' must be a subset of listeners '{_listed(names)}': clients "
            "may be using them"
        )
        raise _refusal(wanted, problem)
    if current.inter_broker_listener not in names:
        raise _refusal(wanted, f"the listener between brokers, {current.inter_broker_listener}, cannot be removed")


def _check_controllers(now: set[str], wanted: set[str], settings: "Settings") -> None:
    if now != wanted:
        raise _refusal(settings, f"controller listeners cannot be added or removed, there are '{_listed(now)}'")


def _check_protocols(added: set[str], wanted: "Settings") -> None:
    unknown = added - parse_protocol_map(wanted[PROTOCOL_MAP]).keys()
    if unknown:
        raise _refusal(wanted, f"No security protocol defined for listener {_listed(unknown)} in {PROTOCOL_MAP}")


def _names(listeners: Iterable[Endpoint]) -> set[str]:
    return {listener.name for listener in listeners}


def _listed(names: set[str]) -> str:
    return ",".join(sorted(names))


def _refusal(wanted: "Settings", problem: str) -> SettingError:
    return SettingError(LISTENERS, ",".join(wanted[LISTENERS]), problem)
