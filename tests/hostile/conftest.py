"""What strangers, clients and damaged files can do to real brokers; the harness is that of the integration tests."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration"), str(TESTS / "support")]

from cluster_fixtures import start_broker, start_cluster  # noqa: E402

__all__ = ["start_broker", "start_cluster"]
