"""Which error AlterReplicaLogDirs returns if there are several."""

from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.handlers.log_dirs import LogDirsHandler
from sskafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)


@pytest.mark.parametrize(
    ("path", "code"), [("/there", ErrorCode.INVALID_TOPIC_EXCEPTION), ("/nowhere", ErrorCode.LOG_DIR_NOT_FOUND)]
)
def test_the_directory_is_looked_for_before_the_topic(path: str, code: ErrorCode) -> None:
    directories = {"/there": SimpleNamespace(is_cordoned=False)}
    logs: Any = SimpleNamespace(directory_at=directories.get)
    none: Any = None
    asked = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, [AlterReplicaLogDirTopic("bad/name", [0])])])
    (result,) = LogDirsHandler(logs, none, None).alter(asked, none).results
    assert [partition.error_code for partition in result.partitions] == [code]
