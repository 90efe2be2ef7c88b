"""`format("sskafka")`: topics as Spark tables and streams, over Kafka's own protocol, without a jar."""
