"""TLS by the standard library: key stores as Kafka names them, contexts and their reload. Start at contexts.py."""
