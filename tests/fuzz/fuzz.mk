# Random inputs against real brokers. FUZZ_SEED=123 replays a run, FUZZ_INPUTS and FUZZ_SECONDS bound it.
.PHONY: fuzz fuzz-slice

fuzz: $(STAMP) ## Send 1,000,000 random requests, and start brokers on damaged files (about an hour)
	FUZZ_INPUTS=$${FUZZ_INPUTS:-1000000} $(BIN)/python -m pytest -q -s tests/fuzz $(PYTEST_OPTIONS)

fuzz-slice: $(STAMP) ## Fuzz for less than five minutes
	FUZZ_SECONDS=$${FUZZ_SECONDS:-120} $(BIN)/python -m pytest -q -s tests/fuzz $(PYTEST_OPTIONS)
