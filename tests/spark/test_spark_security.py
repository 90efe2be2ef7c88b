"""The connector at a broker with TLS, SASL and ACLs. No output shows the password."""

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import sskafka
import sskafka.coordination.transaction_coordinator  # on the broker's loop, pytest would take long to rewrite it

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD = "geheim-4711"


def test_records_are_written_and_read_by_a_user(spark: "SparkSession", capfd: pytest.CaptureFixture[str]) -> None:
    settings = {"super.users": "User:alice", "transaction.state.log.num.partitions": 1}
    users = {"alice": PASSWORD, "bob": f"{PASSWORD}-of-bob"}
    with sskafka.Broker(settings, tls=True, sasl=users, acls=[]) as broker:
        as_alice = {f"kafka.{name}": value for name, value in broker.login("alice").kafka().items()}
        admin = AdminClient({**broker.login("alice").librdkafka(), "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
        rows = spark.createDataFrame([(str(number), "value") for number in range(10)], "key string, value string")
        rows.write.format("sskafka").options(**as_alice, topic="orders").mode("append").save()
        found = spark.read.format("sskafka").options(**as_alice, subscribe="orders").load()
        assert found.count() == 10
        plan = found._jdf.queryExecution().toString()
        as_bob = {f"kafka.{name}": value for name, value in broker.login("bob").kafka().items()}
        with pytest.raises(Exception, match="may not describe topic 'orders'") as denied:
            spark.read.format("sskafka").options(**as_bob, subscribe="orders").load().count()
        wrong = {**as_alice, "kafka.sasl.jaas.config": as_alice["kafka.sasl.jaas.config"].replace(PASSWORD, "wrong")}
        with pytest.raises(Exception, match="invalid credentials") as refused:
            spark.read.format("sskafka").options(**wrong, subscribe="orders").load().count()
        told = capfd.readouterr()
        assert PASSWORD not in f"{plan} {denied.value} {refused.value} {told.out} {told.err}"
