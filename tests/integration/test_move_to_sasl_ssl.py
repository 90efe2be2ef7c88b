"""A cluster whose controllers have listeners of their own moves from PLAINTEXT to SASL_SSL under load."""

from pathlib import Path

import pytest
from moving_cluster import MovingCluster
from moving_load import move_under_load

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("_ours")]


@pytest.mark.timeout(300)
def test_move_to_sasl_ssl_under_load(tmp_path: Path) -> None:
    cluster = MovingCluster(tmp_path, controller_listeners=True)
    try:
        move_under_load(cluster.start())
    finally:
        cluster.close()
