"""Variables, profiles and secrets of pipeline files: where values come from, and that mistakes keep their lines."""

from pathlib import Path

import pytest

from sskafka.pipelines.connector.selection import ConnectorMissingError
from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.files.sink import ParquetSink
from sskafka.pipelines.files.transform import SqlTransform
from sskafka.pipelines.files.variables import MASK, FileOptions
from sskafka.pipelines.runner.errors import PipelineRunError
from sskafka.pipelines.runner.run import masking_secrets

TEXT = """\
name: orders
variables:
  lake: out
  table: ${lake}/orders
sources:
  orders:
    topic: ${topic_prefix:-dev}-orders
    schema: id long not null
    max_offsets_per_trigger: 100
transform:
  sql: select id, '$${id}' as literal from orders
sinks:
  - parquet: {path: "${table}"}
profiles:
  prod:
    variables: {lake: s3://lake}
    sources: {orders: {max_offsets_per_trigger: 90000}}
    trigger: 1 minute
"""


def load(tmp_path: Path, text: str = TEXT, **choices: object) -> Pipeline:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    return load_pipeline(path, FileOptions(**{"environment": {}, **choices}))  # type: ignore[arg-type]


def problems(tmp_path: Path, text: str, **choices: object) -> list[tuple[int, str]]:
    with pytest.raises(PipelineFileError) as failure:
        load(tmp_path, text, **choices)
    return [(problem.line, f"{problem.where}: {problem.text}") for problem in failure.value.problems]


def test_variables_refer_to_those_above_them_and_have_defaults(tmp_path: Path) -> None:
    pipeline = load(tmp_path)
    assert pipeline.sinks == (ParquetSink("parquet", "out/orders"),)
    assert pipeline.sources[0].topics == ("dev-orders",)
    assert pipeline.transform == SqlTransform("select id, '${id}' as literal from orders")


def test_a_profile_is_merged_into_the_file(tmp_path: Path) -> None:
    pipeline = load(tmp_path, profile="prod")
    assert pipeline.sinks == (ParquetSink("parquet", "s3://lake/orders"),)
    assert pipeline.sources[0].max_offsets_per_trigger == 90_000
    assert pipeline.sources[0].topics == ("dev-orders",)  # what the profile does not name stays
    assert pipeline.trigger.interval == "1 minute"


def test_the_caller_s_variables_win_over_the_profile_s(tmp_path: Path) -> None:
    pipeline = load(tmp_path, profile="prod", variables={"lake": "/mnt"})
    assert pipeline.sinks == (ParquetSink("parquet", "/mnt/orders"),)


def test_the_environment_is_named_by_env(tmp_path: Path) -> None:
    text = TEXT.replace("${topic_prefix:-dev}", "${env:STAGE}")
    assert load(tmp_path, text, environment={"STAGE": "test"}).sources[0].topics == ("test-orders",)


def test_a_value_that_an_alias_names_twice_is_replaced_once(tmp_path: Path) -> None:
    text = TEXT.replace("    topic: ${topic_prefix:-dev}-orders", "    topics: [&one '${lake}$${x}', *one]")
    with pytest.raises(PipelineFileError) as failure:
        load(tmp_path, text)
    assert "out${x}" in str(failure.value)  # a topic cannot be called that; the text shows what was replaced


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ("${table}", "${tabel}", 13, "${tabel}: there is no such variable; did you mean ${table}?"),
        ("${table}", "${elsewhere}", 13, "define it under `variables:`, or give --var elsewhere=..."),
        ("${table}", "${env:NO_SUCH}", 13, "the environment variable NO_SUCH is not set"),
        ("${table}", "${secret:nothing}", 13, "there is neither a file /run/secrets/nothing nor"),
        ("${table}", "${vault:x}", 13, "is neither a variable nor ${env:NAME} nor ${secret:NAME}"),
        ("  lake: out", "  lake: [out]", 3, "variables.lake: must be text or a number"),
        ("  lake: out", "  9lake: out", 3, "must begin with a letter"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, part: str
) -> None:
    found = problems(tmp_path, TEXT.replace(old, new))
    assert any(at == line and part in text for at, text in found), found


def test_unknown_profiles_and_variables_of_the_caller(tmp_path: Path) -> None:
    assert "the file has no profile 'prdo'; did you mean prod?" in problems(tmp_path, TEXT, profile="prdo")[0][1]
    unknown = problems(tmp_path, TEXT, variables={"lak": "x"})
    assert "the file has no variable 'lak'; it has lake, table" in unknown[0][1]


def test_a_mistake_in_a_profile_is_named_at_the_profile_s_line(tmp_path: Path) -> None:
    text = TEXT.replace("trigger: 1 minute", "trigger: soon")
    load(tmp_path, text)  # nobody chose it
    assert problems(tmp_path, text, profile="prod") == [
        (18, "trigger: 'soon' is neither available-now nor a time such as `10 seconds`")
    ]


def test_a_secret_comes_from_a_file_or_from_the_environment(tmp_path: Path) -> None:
    text = f"{TEXT}spark: {{spark.password: '${{secret:jdbc}}'}}\n"
    (tmp_path / "jdbc").write_text("from a file\n")
    environment = {"SSKAFKA_SECRETS_DIR": str(tmp_path), "jdbc": "from the environment"}
    assert load(tmp_path, text, environment=environment).spark == {"spark.password": "from a file"}
    (tmp_path / "jdbc").unlink()
    assert load(tmp_path, text, environment=environment).spark == {"spark.password": "from the environment"}


def test_secrets_are_masked_wherever_they_would_be_shown(tmp_path: Path) -> None:
    environment = {"password": "hunter2"}
    text = f"{TEXT}spark: {{spark.password: '${{secret:password}}'}}\n"
    pipeline = load(tmp_path, text, environment=environment)
    with pytest.raises(PipelineRunError) as failure, masking_secrets(pipeline):
        raise PipelineRunError("cannot connect with hunter2", "is hunter2 right?")
    assert str(failure.value) == f"cannot connect with {MASK}"
    assert failure.value.hint == f"is {MASK} right?"
    with pytest.raises(PipelineRunError) as missing, masking_secrets(pipeline):
        raise ConnectorMissingError({"spark.jars": "https://app:hunter2@jars/a.jar"})
    assert "hunter2" not in str(missing.value)
    with pytest.raises(ConnectorMissingError), masking_secrets(pipeline):
        raise ConnectorMissingError({})
    wrong = text.replace("name: orders", "name: '${secret:password}!'")
    with pytest.raises(PipelineFileError) as refused:
        load(tmp_path, wrong, environment=environment)
    assert "hunter2" not in str(refused.value)
    assert MASK in str(refused.value)
