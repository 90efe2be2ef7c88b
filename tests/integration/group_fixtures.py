"""A broker for tests of groups: few partitions of offsets, no waiting for further members, short sessions allowed."""

import sys
from collections.abc import Iterator

import pytest
from broker_process import BrokerProcess

GROUP_SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
}


@pytest.fixture(scope="module")
def group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("groups"), GROUP_SETTINGS)
    try:
        yield broker.start()
    finally:
        broker.close()
        sys.stderr.write(broker.log)
