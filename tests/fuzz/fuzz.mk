# Random inputs against real brokers. FUZZ_SEED=123 replays a run, FUZZ_INPUTS and FUZZ_SECONDS bound it. The slice has
# a seed of its own: it tells whether a change broke something; `make fuzz` looks for what nobody has found yet.
.PHONY: fuzz fuzz-slice

fuzz: $(STAMP) ## Send 1,000,000 random requests, and start brokers on damaged files (about an hour)
	FUZZ_INPUTS=$${FUZZ_INPUTS:-1000000} $(BIN)/python -m pytest -q -s tests/fuzz $(PYTEST_OPTIONS)

fuzz-slice: $(STAMP) ## Fuzz for less than five minutes
	FUZZ_SEED=$${FUZZ_SEED:-1} FUZZ_SECONDS=$${FUZZ_SECONDS:-120} FUZZ_STARTS=$${FUZZ_STARTS:-600} $(BIN)/python -m pytest -q -s tests/fuzz $(PYTEST_OPTIONS)
