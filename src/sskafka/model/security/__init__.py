"""Authentication without I/O: JAAS texts, SASL messages, the SCRAM exchange, names of certificates."""
