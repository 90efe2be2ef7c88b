"""Which files a pipeline's reset takes away."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sskafka.pipelines.files.pipeline import load_pipeline
from sskafka.pipelines.runner.resetting import steps_to_reset

FILE = "name: good\nsources:\n  a: {topic: a, format: text}\nsinks: [{parquet: {path: out}}]\ncheckpoint: .\n"


def test_a_checkpoint_beside_other_things_goes_alone(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(FILE)
    (tmp_path / "parquet" / "offsets").mkdir(parents=True)
    (tmp_path / "other-pipeline" / "offsets").mkdir(parents=True)
    pipeline = load_pipeline(file)
    assert pipeline.sinks[0].name == "parquet"
    for step in steps_to_reset(session_without_groups(), pipeline, "now"):
        step.work()
    assert not (tmp_path / "parquet").exists()
    assert file.exists()
    assert (tmp_path / "other-pipeline" / "offsets").exists()


def session_without_groups() -> Any:
    def run(work: Any) -> dict[str, int]:
        work.close()
        return {}

    return SimpleNamespace(run=run, cluster=None)
