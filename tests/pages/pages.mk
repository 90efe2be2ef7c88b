# The pages about Spark, run as they are written: needs Java 17 or newer, and PyPI for the environment that is shipped.
.PHONY: spark-pages

spark-pages: $(STAMP) ## Run the commands of the pages about Spark (docs/deploy-spark.md, docs/tutorial-pipelines.md)
	$(BIN)/python -m pytest -q tests/pages $(PYTEST_OPTIONS)
