"""A connection for the commands of `sskafka pipeline`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sskafka.pipelines.connector.planning import ClusterSession


def connected(bootstrap: str) -> "ClusterSession":
    from sskafka.client.config import ConnectionConfig  # noqa: PLC0415  not for --help
    from sskafka.pipelines.connector.planning import ClusterSession  # noqa: PLC0415  see above

    return ClusterSession(bootstrap, ConnectionConfig(client_id="sskafka-pipeline"))
