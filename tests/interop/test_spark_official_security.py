"""Spark's own Kafka connector at a broker with TLS, SASL and ACLs, beside SSKafka's with the same options."""

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import sskafka
import sskafka.coordination.transaction_coordinator  # on the broker's loop, pytest would take long to rewrite it

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(str(number), f"value {number}") for number in range(20)]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_both_connectors_take_the_same_options(spark: "SparkSession", mechanism: str) -> None:
    settings = {"super.users": "User:admin", "transaction.state.log.num.partitions": 1}
    users = {"admin": "admin-secret", "alice": "alice-secret"}
    rules = [
        {"allow_principal": "alice", "operation": ["Read", "Write", "Create"], "topic": "*"},
        {"allow_principal": "alice", "operation": ["Read", "Describe"], "group": "*"},
        {"allow_principal": "alice", "operation": ["Write", "Describe"], "transactional_id": "*"},
    ]
    with sskafka.Broker(settings, tls=True, sasl=users, acls=rules) as broker:
        admin = AdminClient(broker.login("admin").librdkafka())
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
        options = {f"kafka.{name}": text for name, text in broker.login("alice", mechanism).kafka().items()}
        rows = spark.createDataFrame(ROWS, "key string, value string")
        for connector in ("kafka", "sskafka"):
            rows.write.format(connector).options(**options, topic="orders").mode("append").save()
        for connector in ("kafka", "sskafka"):
            found = spark.read.format(connector).options(**options, subscribe="orders").load()
            values = [bytes(row.value).decode() for row in found.select("value").collect()]
            assert sorted(values) == sorted([value for _, value in ROWS] * 2)
