"""`sskafka config` on a real broker."""

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from command_line import run_sskafka

import sskafka


def config(broker: sskafka.Broker, *words: str) -> CompletedProcess[str]:
    return run_sskafka("config", *words, "-b", broker.bootstrap_servers)


def output(broker: sskafka.Broker, *words: str) -> str:
    done = config(broker, *words)
    assert done.returncode == 0, done
    return done.stdout


def test_the_life_of_a_setting(sskafka_broker: sskafka.Broker) -> None:
    sskafka_broker.create_topic("orders")
    assert output(sskafka_broker, "get", "retention.ms", "--topic", "orders") == "604800000\n"
    done = config(sskafka_broker, "set", "retention.ms=1000", "--topic", "orders", "--dry-run")
    assert done.stderr == "topic orders: retention.ms would be set to 1000\ndry run: nothing was changed\n"
    assert output(sskafka_broker, "get", "retention.ms", "--topic", "orders") == "604800000\n"
    assert (
        "topic orders: retention.ms set to 1000"
        in config(sskafka_broker, "set", "retention.ms=1000", "--topic", "orders").stderr
    )
    described = json.loads(output(sskafka_broker, "describe", "--topic", "orders", "--format", "json"))
    (changed,) = [one for one in described if one["source"] == "DYNAMIC_TOPIC_CONFIG"]
    assert (changed["name"], changed["value"], changed["default"]) == ("retention.ms", "1000", "604800000")
    assert output(sskafka_broker, "diff", "--topic", "orders").split() == [
        *("NAME", "topic", "orders", "default"),
        *("retention.ms", "1000", "604800000"),
    ]
    output(sskafka_broker, "unset", "retention.ms", "--topic", "orders")
    assert "the same" in config(sskafka_broker, "diff", "--topic", "orders").stderr


def test_topics_are_compared(sskafka_broker: sskafka.Broker) -> None:
    sskafka_broker.create_topic("orders", configs={"cleanup.policy": "compact"})
    sskafka_broker.create_topic("bills")
    words = ("diff", "--topic", "orders", "--topic", "bills", "--format", "json")
    assert json.loads(output(sskafka_broker, *words)) == [
        {"name": "cleanup.policy", "topic orders": "compact", "topic bills": "delete"}
    ]


def test_brokers_and_groups(sskafka_broker: sskafka.Broker) -> None:
    described = output(sskafka_broker, "describe", "--all", "--broker", "1")
    lines = {line.split()[0]: line for line in described.splitlines()}
    assert lines["node.id"].endswith("after a restart")
    assert lines["log.cleaner.threads"].endswith("at once")
    output(sskafka_broker, "set", "log.retention.ms=5000", "--broker-defaults")
    assert "log.retention.ms" in output(sskafka_broker, "describe", "--broker-defaults")
    output(sskafka_broker, "set", "consumer.session.timeout.ms=50000", "--group", "billing")
    assert output(sskafka_broker, "get", "consumer.session.timeout.ms", "--group", "billing") == "50000\n"


def test_the_settings_of_a_client_id_are_its_quotas(sskafka_broker: sskafka.Broker) -> None:
    rate = "producer_byte_rate"
    done = config(sskafka_broker, "set", f"{rate}=1000000", "--client-id", "loader", "--dry-run")
    assert f"client-id loader: {rate} would be set to 1000000\ndry run: nothing was changed" in done.stderr
    assert output(sskafka_broker, "get", rate, "--client-id", "loader") == "\n"
    output(sskafka_broker, "set", f"{rate}=1000000", "--client-id", "loader")
    assert output(sskafka_broker, "get", rate, "--client-id", "loader") == "1000000\n"
    got = json.loads(output(sskafka_broker, "get", rate, "--client-id", "loader", "--output", "json"))
    assert (got["name"], got["value"], got["source"]) == (rate, "1000000", "CLIENT_QUOTA")
    assert json.loads(
        output(sskafka_broker, "diff", "--client-id", "loader", "--client-id", "other", "--output", "json")
    ) == [{"name": rate, "client-id loader": "1000000", "client-id other": None}]
    assert rate in output(sskafka_broker, "describe", "--client-id", "loader")
    output(sskafka_broker, "unset", rate, "--client-id", "loader")
    assert rate not in output(sskafka_broker, "describe", "--client-id", "loader")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("get", "retention.ms"), 2, "--topic, --broker, --broker-defaults, --group or --client-id"),
        (("get", "retention.ms", "--topic", "orders", "--broker", "1"), 2, "only one kind"),
        (("get", "retention.m", "--topic", "orders"), 1, "did you mean retention.ms?"),
        (("set", "retention.ms=soon", "--topic", "orders"), 1, "retention.ms"),
        (("set", "node.id=7", "--broker", "1"), 1, "set it in server.properties and restart the broker"),
        (("set", "retention.ms", "--topic", "orders"), 2, "KEY=VALUE"),
        (("set", "producer_byte_rat=5", "--client-id", "loader"), 1, "did you mean producer_byte_rate?"),
        (("set", "producer_byte_rate=fast", "--client-id", "loader"), 2, "is not a number"),
        (("describe", "--topic", "orders", "--topic", "bills"), 2, "`sskafka config diff` compares several"),
    ],
)
def test_wrong_usage(sskafka_broker: sskafka.Broker, words: tuple[str, ...], code: int, text: str) -> None:
    sskafka_broker.create_topic("orders")
    done = config(sskafka_broker, *words)
    assert done.returncode == code, done
    assert text.replace("KEY=VALUE", "=") in done.stderr
    assert "Traceback" not in done.stderr


def test_secrets_are_not_shown_and_need_not_be_arguments(sskafka_broker: sskafka.Broker, tmp_path: Path) -> None:
    name, secret = "listener.name.later.plain.sasl.jaas.config", "hush-hush"
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{secret}";'
    changed = config(sskafka_broker, "set", f"{name}={jaas}", "--broker", "1")
    assert f"{name} set to (secret)" in changed.stderr
    refused = config(sskafka_broker, "set", f"{name}={jaas.rstrip(';')}", "--broker", "1")
    assert refused.returncode == 1
    assert secret not in changed.stdout + changed.stderr + refused.stdout + refused.stderr
    file = tmp_path / "changes.properties"
    file.write_text(f"{name}={jaas}\n")
    output(sskafka_broker, "set", "--add-config-file", str(file), "--broker", "1")
    described = output(sskafka_broker, "describe", "--broker", "1", "--format", "json")
    assert (name in described, secret in described) == (True, False)
    output(sskafka_broker, "unset", name, "--broker", "1")
    assert name not in output(sskafka_broker, "describe", "--broker", "1")
    missing = config(sskafka_broker, "set", "--add-config-file", str(tmp_path / "none"), "--broker", "1")
    assert "cannot be read: No such file or directory" in missing.stderr
    assert "name the settings" in config(sskafka_broker, "set", "--broker", "1").stderr
