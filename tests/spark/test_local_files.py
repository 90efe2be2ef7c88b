"""Local files of a session: permissions as Hadoop sets them, and no program that is started for each file."""

import stat
from pathlib import Path

from pyspark.sql import SparkSession

from sskafka.pipelines.local_files import CLASS


def test_files_have_hadoops_permissions_and_checksums(spark: SparkSession, tmp_path: Path) -> None:
    java = spark._jvm
    assert java is not None
    conf = spark._jsc.hadoopConfiguration()
    files = java.org.apache.hadoop.fs.FileSystem.get(java.java.net.URI("file:///"), conf)
    assert files.getClass().getName() == CLASS
    path = java.org.apache.hadoop.fs.Path
    files.create(path(f"{tmp_path}/made"), True).close()
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o644
    assert (tmp_path / ".made.crc").exists()
    for mode in (0o600, 0o755, 0o070, 0o000, 0o777):
        files.setPermission(path(f"{tmp_path}/made"), java.org.apache.hadoop.fs.permission.FsPermission(mode))
        assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == mode
    files.mkdirs(path(f"{tmp_path}/directory"))
    files.setPermission(path(f"{tmp_path}/directory"), java.org.apache.hadoop.fs.permission.FsPermission(0o1777))
    assert stat.S_IMODE((tmp_path / "directory").stat().st_mode) == 0o1777
