import asyncio
from pathlib import Path
from random import Random

import pytest
from controllers import NOW_MS, register, running

from sskafka.metadata.records import FeatureLevelRecord
from sskafka.model.ids import parse_uuid, uuid_text
from sskafka.model.settings import Settings
from sskafka.quorum.formatting import (
    FormatReport,
    bootstrap_records,
    cluster_id_for,
    format_storage,
    random_uuid,
    storage_info,
)
from sskafka.quorum.snapshots import read_snapshot
from sskafka.storage.disk import OsDisk
from sskafka.storage.errors import LogDirectoryError

WRITTEN_BY_KAFKA = Path(__file__).parents[2] / "support" / "written_by_kafka"
VOTERS = "1@a:9093,2@b:9093"
DISK = OsDisk()


def settings_for(*directories: Path, **keys: str) -> Settings:
    given = {key.replace("_", "."): value for key, value in keys.items()}
    return Settings.resolve({"log.dirs": ",".join(map(str, directories)), **given})


def format_(settings: Settings, **options: object) -> FormatReport:
    return format_storage(DISK, settings, Random(3).randbytes, NOW_MS, **options)  # type: ignore[arg-type]


def test_every_directory_gets_its_own_id_and_the_first_the_features(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "a", tmp_path / "b", node_id="5")
    report = format_(settings)
    info = storage_info(DISK, settings)
    assert report.formatted == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert {meta.cluster_id for meta in info.found.values()} == {report.cluster_id}
    assert {meta.node_id for meta in info.found.values()} == {5}
    assert len({meta.directory_id for meta in info.found.values()}) == 2
    assert (tmp_path / "a" / "bootstrap.checkpoint").exists()
    assert not (tmp_path / "b" / "bootstrap.checkpoint").exists()
    assert (info.problems, info.unformatted) == ([], [])


def test_the_bootstrap_file_says_what_kafkas_own_says_but_features_that_are_absent(tmp_path: Path) -> None:
    format_(settings_for(tmp_path))
    ours = read_snapshot(DISK, str(tmp_path / "bootstrap.checkpoint"))
    kafkas = read_snapshot(DISK, str(WRITTEN_BY_KAFKA / "bootstrap.checkpoint"))
    absent = (b"share.version", b"streams.version")
    expected = [item for item in kafkas if not any(name in (item.record.value or b"") for name in absent)]
    assert len(expected) == len(kafkas) - len(absent)
    assert [(item.is_control, item.record.key, item.record.value) for item in ours] == [
        (item.is_control, item.record.key, item.record.value) for item in expected
    ]
    assert [item.record.offset for item in ours] == [item.record.offset for item in kafkas][: len(expected)]


def test_an_older_release_is_begun_with_its_own_features(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    assert format_(settings, metadata_version=20).metadata_version == "3.8-IV0"
    assert bootstrap_records(DISK, str(tmp_path), settings) == [FeatureLevelRecord("metadata.version", 20)]

    async def start() -> dict[str, int]:
        async with running(DISK, str(tmp_path)) as node:
            await register(node)
            return node.plane.committed.image.features

    assert asyncio.run(start()) == {"metadata.version": 20}


def test_formatting_again_is_refused_unless_it_may_be_left(tmp_path: Path) -> None:
    first = format_(settings_for(tmp_path / "a"))
    with pytest.raises(LogDirectoryError, match="already formatted"):
        format_(settings_for(tmp_path / "a"))
    again = format_(settings_for(tmp_path / "a", tmp_path / "b"), ignore_formatted=True)
    assert (again.already_formatted, again.formatted) == ([str(tmp_path / "a")], [str(tmp_path / "b")])
    assert again.cluster_id == first.cluster_id


def test_directories_of_another_node_or_cluster_are_refused(tmp_path: Path) -> None:
    format_(settings_for(tmp_path, node_id="1"), cluster_id="x")
    with pytest.raises(LogDirectoryError, match="belongs to node 1"):
        format_(settings_for(tmp_path, node_id="2"), ignore_formatted=True)
    with pytest.raises(LogDirectoryError, match="belong to cluster x, not to y"):
        format_(settings_for(tmp_path, node_id="1"), cluster_id="y", ignore_formatted=True)


def test_an_unwritable_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogDirectoryError, match="cannot format"):
        format_(settings_for(tmp_path / "file" / "below"))


def test_nodes_with_the_same_voters_agree_on_the_cluster_id() -> None:
    reversed_voters = ",".join(reversed(VOTERS.split(",")))
    nodes = [Settings.resolve({"node.id": "1", "controller.quorum.voters": VOTERS})]
    nodes.append(Settings.resolve({"node.id": "2", "controller.quorum.voters": reversed_voters}))
    ids = {cluster_id_for(settings, Random(settings["node.id"]).randbytes) for settings in nodes}
    assert len(ids) == 1
    other = Settings.resolve({"node.id": "1", "controller.quorum.voters": "1@a:9093"})
    assert cluster_id_for(other, Random(1).randbytes) not in ids
    assert len(parse_uuid(ids.pop())) == 16


def test_a_given_cluster_id_wins() -> None:
    settings = Settings.resolve({"cluster.id": "mine", "node.id": "1", "controller.quorum.voters": VOTERS})
    assert cluster_id_for(settings, Random(1).randbytes) == "mine"


def test_random_ids_are_neither_reserved_nor_dashing() -> None:
    offered = iter([bytes(16), bytes(15) + b"\x05", b"\xf8" + bytes([1] * 15), bytes([1] * 16)])
    assert uuid_text(random_uuid(lambda _: next(offered))) == uuid_text(bytes([1] * 16))


def test_info_tells_what_is_missing_and_what_does_not_fit(tmp_path: Path) -> None:
    format_(settings_for(tmp_path / "a", node_id="1"))
    info = storage_info(DISK, settings_for(tmp_path / "a", tmp_path / "b", node_id="2"))
    assert info.unformatted == [str(tmp_path / "b")]
    assert len(info.problems) == 1
    assert "belongs to node 1" in info.problems[0]


def test_the_bootstrap_of_a_directory_without_one_is_that_of_today(tmp_path: Path) -> None:
    records = bootstrap_records(DISK, str(tmp_path), Settings.resolve({"min.insync.replicas": "2"}))
    assert FeatureLevelRecord("metadata.version", 30) in records
    assert getattr(records[-1], "value", None) == "2"
