# Benchmarks: a load generator in C on the librdkafka of the pinned confluent-kafka wheel, driven by python -m benchmarks.
#
# Debian's librdkafka is too old for a fair consume benchmark (no fetch.queue.backoff.ms), so only its headers are used; the functions
# called have not changed since. Tiny requests over TLS use OpenSSL. See docs/adr/0005-load-generator.md.
LOAD := build/bench/load
LOAD_SOURCES := $(wildcard benchmarks/load/*.c)
LOAD_HEADERS := $(wildcard benchmarks/load/*.h)
RDKAFKA_HEADER := /usr/include/librdkafka/rdkafka.h
OPENSSL_HEADER := /usr/include/openssl/ssl.h
RDKAFKA_LIBRARY = $(firstword $(wildcard $(abspath $(VENV))/lib/python3*/site-packages/confluent_kafka.libs/librdkafka-*.so*))
BENCH_OPTIONS ?=

.PHONY: load bench bench-before bench-console bench-hot-path bench-request-cpu bench-grid bench-cluster bench-cores bench-growth bench-transactions bench-groups bench-http bench-kafka bench-compaction bench-failover bench-spark bench-pipeline-latency bench-pipeline-batch

load: $(LOAD) ## Build the load generator of the benchmarks

$(RDKAFKA_HEADER):
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get install -y -qq librdkafka-dev >/dev/null || { apt-get update -qq && apt-get install -y -qq librdkafka-dev >/dev/null; }; \
	else echo "the load generator needs librdkafka's headers: apt-get install librdkafka-dev" >&2; exit 1; fi

$(OPENSSL_HEADER):
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get install -y -qq libssl-dev >/dev/null || { apt-get update -qq && apt-get install -y -qq libssl-dev >/dev/null; }; \
	else echo "the load generator needs OpenSSL's headers: apt-get install libssl-dev" >&2; exit 1; fi

$(LOAD): $(LOAD_SOURCES) $(LOAD_HEADERS) $(STAMP) | $(RDKAFKA_HEADER) $(OPENSSL_HEADER)
	@test -n "$(RDKAFKA_LIBRARY)" || { echo "no librdkafka in $(VENV): the confluent-kafka wheel is missing" >&2; exit 1; }
	@mkdir -p $(@D)
	cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -pthread -o $@ $(LOAD_SOURCES) $(RDKAFKA_LIBRARY) -lssl -lcrypto -Wl,-rpath,$(dir $(RDKAFKA_LIBRARY))

bench: $(LOAD) ## Measure SSKafka alone (BENCH_OPTIONS="--quick" for a short run)
	$(BIN)/python -m benchmarks sskafka $(BENCH_OPTIONS)

bench-before: $(LOAD) ## Compare this checkout with the commit BEFORE, in alternating rounds
	@test -n "$(BEFORE)" || { echo "name the commit to compare with: make bench-before BEFORE=COMMIT" >&2; exit 1; }
	rm -rf build/before && mkdir -p build/before
	git archive $(BEFORE) | tar -x -C build/before
	$(BIN)/python -m benchmarks versions --before build/before $(BENCH_OPTIONS)

bench-hot-path: $(STAMP) ## Measure the CPU time of the produce path in one process (SSKAFKA_PURE=1: uncompiled)
	$(BIN)/python -m benchmarks.hot_path $(BENCH_OPTIONS)

bench-request-cpu: $(LOAD) ## Measure the CPU time of tiny requests at a broker, also on a busy machine (BENCH_OPTIONS="--brokers 3")
	$(BIN)/python -m benchmarks.turn_cost
	$(BIN)/python -m benchmarks.request_cpu $(BENCH_OPTIONS)

bench-cluster: $(LOAD) ## Compare 3 brokers with 3 of Apache Kafka: replicated writes, acks=all
	$(BIN)/python -m benchmarks compare --brokers 3 $(BENCH_OPTIONS)

bench-cores: $(LOAD) ## Compare one broker for each core with one Apache Kafka: tiny requests over 8 partitions
	$(BIN)/python -m benchmarks.cores $(BENCH_OPTIONS)

bench-growth: $(STAMP) ## Measure what partitions, connections, large logs and many topics cost (BENCH_OPTIONS=--kafka: Apache Kafka, too)
	$(BIN)/python -m benchmarks.growth all $(BENCH_OPTIONS)

bench-groups: $(STAMP) ## Measure offset commits and how long a group of 100 members takes to join
	$(BIN)/python -m benchmarks.groups $(BENCH_OPTIONS)

bench-transactions: $(STAMP) ## Measure transactions per second and their duration
	$(BIN)/python -m benchmarks.transactions $(BENCH_OPTIONS)

bench-http: $(STAMP) ## Measure the HTTP server and its effect on Kafka clients
	$(BIN)/python -m benchmarks.http_calls

bench-console: $(LOAD) ## Measure what an open console costs a Kafka client
	$(BIN)/python -m benchmarks.console $(BENCH_OPTIONS)

bench-kafka: $(LOAD) ## Compare SSKafka with Apache Kafka in alternating rounds, with goals
	$(BIN)/python -m benchmarks compare $(BENCH_OPTIONS)

bench-grid: $(STAMP) ## Measure throughput by partitions, brokers and replication (docs/evaluation.md)
	$(BIN)/sskafka perf grid --results build/grid $(BENCH_OPTIONS)

bench-compaction: $(STAMP) ## Measure compaction of 10 million records and its effect on producers
	$(BIN)/python -m benchmarks.compaction $(BENCH_OPTIONS)

bench-failover: $(STAMP) ## Measure unavailability when brokers are killed, compared with Apache Kafka (BENCH_OPTIONS="--quick" for two rounds)
	$(BIN)/python -m benchmarks.failover $(BENCH_OPTIONS)

bench-spark: $(STAMP) ## Measure reading and writing with Spark, compared with Spark's own connector and Apache Kafka
	$(BIN)/python -m benchmarks.spark_read $(BENCH_OPTIONS)
	$(BIN)/python -m benchmarks.spark_read --varied $(BENCH_OPTIONS)
	$(BIN)/python -m benchmarks.spark_write $(BENCH_OPTIONS)

bench-pipeline-latency: $(STAMP) ## Measure the latency of a pipeline, compared with Spark's own connector (20 minutes)
	$(BIN)/python -m benchmarks.spark_latency $(BENCH_OPTIONS)

bench-pipeline-batch: $(STAMP) ## Measure the steps of a micro-batch, compared with the shortest batch that Spark can run (6 minutes)
	$(BIN)/python -m benchmarks.spark_batch $(BENCH_OPTIONS)
