# Long failures of real processes, and networks that break: needs root (or `unshare -Urn make chaos`) for network namespaces.
# The tests of Spark pipelines among them need Java 17 or newer.
.PHONY: chaos

chaos: $(STAMP) ## Kill, pause and cut off brokers under load, for some minutes (needs root)
	FAILOVER_SECONDS_MAX=3 $(BIN)/python -m pytest -q tests/integration/test_cluster_failover.py $(PYTEST_OPTIONS)
	$(BIN)/python -m pytest -q tests/chaos $(PYTEST_OPTIONS)
	LONG_ATTACKS=1 $(BIN)/python -m pytest -q tests/hostile -m long_attack $(PYTEST_OPTIONS)
	$(BIN)/python -m pytest -q tests/spark/test_spark_kills.py $(PYTEST_OPTIONS)
