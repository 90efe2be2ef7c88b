# Programs from outside PyPI: kcat (Debian) and Apache Kafka's own tools and broker (Maven Central), against SSKafka and against Apache
# Kafka itself, which proves the tests.
.PHONY: interop

interop: $(STAMP) ## Run the tests with kcat and Apache Kafka's tools (needs java, mvn; installs kcat when root)
	$(BIN)/python -m pytest -q tests/interop $(PYTEST_OPTIONS)
