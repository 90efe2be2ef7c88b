"""Several brokers on one machine (`--brokers-per-host`): their ids.

    machine of node.id 3, four brokers:    3, 1003, 2003, 3003

The first broker has the `node.id` of the machine and may be a voter of the metadata quorum; the others are only
brokers. An id says to which machine a broker belongs, so a machine can get more brokers without new ids for the old.
"""

from typing import Final

ID_STEP: Final = 1000
"""Distance between the ids of two brokers of a machine. The `node.id` of a machine must be below it."""


def broker_id_of(machine_id: int, number: int) -> int:
    """Return the id of a machine's broker with this number, counted from 0."""
    return machine_id + number * ID_STEP


def machine_id_of(broker_id: int) -> int:
    """Return the id of the first broker of the machine."""
    return broker_id % ID_STEP


def is_first_of_machine(broker_id: int) -> bool:
    return broker_id < ID_STEP
