"""The data of a machine's brokers below one root.

    /data                    log directory of the first broker, as without --brokers-per-host
    /data/brokers/1/         broker.pid of the first broker
    /data/brokers/1001/      log directory of the second broker, and its broker.pid

With several log directories every broker has a subdirectory in each. A log directory ignores `brokers`, because it is
not the name of a partition. So a machine can get more brokers at any time; fewer only when the last ones hold no
partitions.
"""

import os
from collections.abc import Iterator, Sequence

from sskafka.cli.failures import CommandError
from sskafka.model.host_brokers import ID_STEP
from sskafka.model.ids import METADATA_TOPIC
from sskafka.storage.partition_directory import parse_directory_name

BROKERS = "brokers"


def directory_of(log_directory: str, broker_id: int) -> str:
    """Return the directory of a broker below a log directory of the machine."""
    return os.path.join(log_directory, BROKERS, str(broker_id))


def check_none_left_out(log_directories: Sequence[str], broker_ids: Sequence[int]) -> list[int]:
    """Raise CommandError if a broker that is not among these holds partitions. Return the others left out."""
    left_out: dict[int, int] = {}
    for log_directory in log_directories:
        for broker_id in _brokers_below(log_directory):
            if broker_id not in broker_ids:
                held = partitions_in(directory_of(log_directory, broker_id))
                left_out[broker_id] = left_out.get(broker_id, 0) + held
    for broker_id, partitions in sorted(left_out.items()):
        if partitions:
            raise _refusal(log_directories[0], broker_id, partitions, len(broker_ids))
    return sorted(left_out)


def _brokers_below(log_directory: str) -> Iterator[int]:
    try:
        names = os.listdir(os.path.join(log_directory, BROKERS))
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (int(name) for name in names if name.isdecimal())


def partitions_in(directory: str | os.PathLike[str]) -> int:
    """Return the number of partitions in a log directory, without the metadata log."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return 0
    partitions = (parse_directory_name(name) for name in names)
    return sum(partition is not None and partition.topic != METADATA_TOPIC for partition in partitions)


def _refusal(log_directory: str, broker_id: int, partitions: int, count: int) -> CommandError:
    held = "1 partition" if partitions == 1 else f"{partitions} partitions"
    cause = (
        f"broker {broker_id} of this machine holds {held} in {directory_of(log_directory, broker_id)}, "
        f"and {'one broker' if count == 1 else f'{count} brokers'} per host would leave it out"
    )
    hint = (
        f"start with --brokers-per-host {broker_id // ID_STEP + 1}; to remove the broker, move its partitions first "
        f"(`sskafka broker decommission {broker_id} --wait 0`)"
    )
    return CommandError(cause, hint)
