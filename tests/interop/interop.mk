# Programs from outside PyPI: kcat (Debian), Apache Kafka's own tools and broker and Spark's own Kafka connector (Maven Central), against
# SSKafka and, where that proves the tests, against Apache Kafka itself.
YARN_TEST := tests/interop/test_spark_yarn.py

.PHONY: apache-kafka spark-kafka interop spark-interop yarn-test differential compatibility

apache-kafka: $(STAMP) ## Fetch Apache Kafka from Maven Central into build/, unless it is there
	$(BIN)/python -c 'from benchmarks.apache_kafka import resolve_kafka_libs; resolve_kafka_libs()'

spark-kafka: $(STAMP) ## Fetch Spark's own Kafka connector from Maven Central into build/, unless it is there
	$(BIN)/python -c 'from benchmarks.spark_kafka import resolve_spark_kafka_jars; print(resolve_spark_kafka_jars())'

interop: $(STAMP) ## Run the tests with kcat, franz-go and Apache Kafka's tools (needs java, mvn, go; installs kcat when root)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile tests/interop --ignore-glob='*/test_spark_*' $(PYTEST_OPTIONS)

spark-interop: $(STAMP) ## Run the tests with Spark's own Kafka connector, beside ours (needs java, mvn)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile $(filter-out $(YARN_TEST),$(wildcard tests/interop/test_spark_*.py)) $(PYTEST_OPTIONS)

yarn-test: $(STAMP) ## Send a pipeline to a YARN cluster with HDFS, as docs/deploy-spark.md does (6 minutes; needs java, mvn)
	$(BIN)/python -m pytest -q $(YARN_TEST) $(PYTEST_OPTIONS)

differential: $(STAMP) ## Ask Apache Kafka and SSKafka the same and compare the answers (SEEDS=1,2,3 chooses random requests)
	$(BIN)/python -m pytest -q tests/interop/differential $(PYTEST_OPTIONS)

compatibility: $(STAMP) ## Run Kafka's command-line tools against both and write docs/compatibility.md
	COMPATIBILITY=write $(BIN)/python -m pytest -q tests/interop/tools $(PYTEST_OPTIONS)
