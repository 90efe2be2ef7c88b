"""The client properties of a pipeline: what a file and the command line may say, and what must stay hidden."""

from pathlib import Path

import pytest

from sskafka.pipelines.connector.client_properties import not_for_java, secret_values
from sskafka.pipelines.files.document import PipelineFileError
from sskafka.pipelines.files.pipeline import Pipeline, load_pipeline
from sskafka.pipelines.runner.run import planning_options

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
JAAS = f'{MODULE} username="etl" password="quite-secret";'
LOGIN = f"security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA-512, sasl.jaas.config: '{JAAS}'"
FILE = """\
name: secured
kafka: {{{kafka}}}
sources:
  orders: {{topic: orders, format: text, options: {{{options}}}}}
sinks:
  - console: {{}}
"""


def load(directory: Path, kafka: str = "", options: str = "") -> Pipeline:
    file = directory / "secured.yaml"
    file.write_text(FILE.format(kafka=kafka, options=options))
    return load_pipeline(file)


def test_the_runner_and_the_queries_connect_alike(tmp_path: Path) -> None:
    pipeline = load(tmp_path, LOGIN)
    assert (pipeline.connection.client_id, pipeline.connection.sasl_jaas_config) == ("sskafka-pipeline", JAAS)
    assert pipeline.client_options["kafka.security.protocol"] == "SASL_SSL"
    assert planning_options(pipeline, pipeline.sources[0], "b:1").connection.sasl_jaas_config == JAAS


def test_options_of_a_source_and_of_the_command_line_come_first(tmp_path: Path) -> None:
    pipeline = load(tmp_path, LOGIN, "kafka.sasl.mechanism: PLAIN").with_properties({"sasl.mechanism": "SCRAM-SHA-256"})
    assert pipeline.connection.sasl_mechanism == "SCRAM-SHA-256"
    assert planning_options(pipeline, pipeline.sources[0], "b:1").connection.sasl_mechanism == "PLAIN"


@pytest.mark.parametrize(
    ("kafka", "place", "part"),
    [
        ("security.protocol: SASL_SSL", "kafka", "sasl.mechanism"),
        ("security.protokol: SSL", "kafka.security.protokol", "did you mean security.protocol?"),
        ("kafka.security.protocol: SSL", "kafka.kafka.security.protocol", "leave out the prefix: security.protocol"),
        ("bootstrap.servers: b", "kafka.bootstrap.servers", "--bootstrap-server"),
        ("transactional.id: t", "kafka.transactional.id", "use transactionalIdPrefix"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, kafka: str, place: str, part: str) -> None:
    with pytest.raises(PipelineFileError) as raised:
        load(tmp_path, kafka)
    assert "secured.yaml:2:" in str(raised.value)
    assert f" {place}: " in str(raised.value)
    assert part in str(raised.value)


def test_secrets_are_masked_wherever_they_are_given(tmp_path: Path) -> None:
    pipeline = load(tmp_path, LOGIN, "kafka.ssl.key.password: key-secret")
    more = pipeline.with_properties({"sasl.oauthbearer.client.credentials.client.secret": "oauth-secret"})
    told = more.masked("etl quite-secret key-secret oauth-secret")
    assert told == "etl ******** ******** ********"
    assert "-secret" not in repr(more)


def test_short_words_and_names_are_not_masked() -> None:
    assert secret_values({"sasl.username": "etl-user", "sasl.password": "abc", "ssl.ca.location": "/ca.pem"}) == set()


def test_names_that_java_does_not_have() -> None:
    assert not_for_java({"sasl.username": "u", "security.protocol": "SSL"}) == {"sasl.username": "sasl.jaas.config"}
