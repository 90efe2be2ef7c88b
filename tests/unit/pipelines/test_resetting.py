"""Which files a pipeline's reset takes away."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.resetting import ResetError, steps_to_reset

FILE = "name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{parquet: {path: out}}]\ncheckpoint: .\n"


def test_a_checkpoint_beside_other_things_goes_alone(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(FILE)
    (tmp_path / "parquet" / "offsets").mkdir(parents=True)
    (tmp_path / "other-pipeline" / "offsets").mkdir(parents=True)
    pipeline = load_pipeline(file)
    assert pipeline.sinks[0].name == "parquet"
    for step in steps_to_reset(session_without_groups(), pipeline, "", "now"):
        step.work()
    assert not (tmp_path / "parquet").exists()
    assert file.exists()
    assert (tmp_path / "other-pipeline" / "offsets").exists()


def test_files_of_url_paths_are_moved(tmp_path: Path) -> None:
    """Reset found no directory, and the next run skipped its batches."""
    file = tmp_path / "good.yaml"
    file.write_text(
        FILE.replace("path: out", f"path: 'file://{tmp_path}/out'").replace(": .", f": file://{tmp_path}/c")
    )
    (tmp_path / "c" / "parquet" / "offsets").mkdir(parents=True)
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    for step in steps_to_reset(session_without_groups(), load_pipeline(file), "", "now"):
        step.work()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.yaml", "out-before-now"]


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("path: out", "path: 's3a://lake/out'", r"delete \S+, s3a://lake/out/_spark_metadata and"),
        ("checkpoint: .", "checkpoint: hdfs://h:1/c", r"delete hdfs://h:1/c, \S+/out/_spark_metadata and"),
    ],
)
def test_what_is_elsewhere_is_named_before_anything_is_deleted(tmp_path: Path, old: str, new: str, places: str) -> None:
    """Reset deleted one half, or said that there was no progress."""
    file = tmp_path / "good.yaml"
    file.write_text(FILE.replace(old, new))
    (tmp_path / "parquet" / "offsets").mkdir(parents=True)
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(ResetError, match=f"{places} the consumer groups good.parquet"):
        next(steps_to_reset(session_without_groups(), load_pipeline(file), "", "now"))


def session_without_groups() -> Any:
    def run(work: Any) -> dict[str, int]:
        work.close()
        return {}

    return SimpleNamespace(run=run, cluster=None)
