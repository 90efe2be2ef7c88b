"""Requirements of the `sskafka pipeline` commands: the extra `spark` and a connection."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sskafka.cli.failures import CommandError
from sskafka.model.extras import install_extra

if TYPE_CHECKING:
    from sskafka.pipelines.connector.planning import ClusterSession


def require_extra() -> None:
    """Raise CommandError if the extra is missing. Commands without Spark need it too, for Arrow and YAML."""
    for module in ("pyarrow", "yaml"):
        if find_spec(module) is None:
            raise CommandError(f"pipelines need {module}", install_extra("spark"))


def connected(bootstrap: str, properties: Mapping[str, str]) -> "ClusterSession":
    """Connect with these client properties: those of -X, or those of a pipeline."""
    from sskafka.pipelines.connector.client_properties import pipeline_connection  # noqa: PLC0415  not for --help
    from sskafka.pipelines.connector.planning import ClusterSession  # noqa: PLC0415  see above

    return ClusterSession(bootstrap, pipeline_connection(properties))
