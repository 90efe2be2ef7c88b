# Random faults under one Spark pipeline, for a night: needs Java 17 or newer, and root for the network partitions among them.
.PHONY: spark-faults

spark-faults: $(STAMP) ## Kill, pause and cut off a Spark pipeline and its brokers at random (SEED=123 replays; FAULTS=50)
	SEED=$(SEED) FAULTS=$${FAULTS:-50} $(BIN)/python -m pytest -q -s tests/faults $(PYTEST_OPTIONS)
