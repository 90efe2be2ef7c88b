"""The Spark connector `format("sskafka")`: reads and writes topics over Kafka's protocol and needs no jar."""
