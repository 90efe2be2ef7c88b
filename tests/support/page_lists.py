"""The pages whose examples are run without Spark, and what a reader has at hand before the first of them."""

ORDERS = "$ sskafka topic create orders -p 3\n"
OPEN_TRANSACTION = (
    "import sys, time, confluent_kafka; "
    'producer = confluent_kafka.Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "billing-7"}); '
    "producer.init_transactions(); producer.begin_transaction(); "
    'producer.produce("invoices", b"12 EUR"); producer.flush(); time.sleep(600)'
)
MEMBER = "$ sskafka topic consume orders -g billing -X group.protocol=consumer -X client.id=worker-{} &\n"
WRITE_ALWAYS = "$ bash -c 'while sleep 0.2; do echo k:hello; done | sskafka topic produce {} --key-separator :' &\n"
WAIT_FOR = "$ until {}; do sleep 0.1; done\n"

FIRST_PAGES = {
    "README.md": "",
    "docs/index.md": "",
    "docs/http.md": "",
    "docs/metrics.md": "",
}
CLIENT_PAGES = {
    "docs/lab.md": "",
    "docs/testing.md": "",
    "docs/clients.md": ORDERS + "$ sskafka topic create refunds\n" + WRITE_ALWAYS.format("orders"),
    "docs/groups.md": ORDERS
    + "$ sskafka topic create clicks\n"
    + "$ echo k:hello | sskafka topic produce clicks --key-separator :\n"
    + WRITE_ALWAYS.format("orders")
    + MEMBER.format(1)
    + MEMBER.format(2)
    + "$ sskafka topic consume clicks -o start -X client.id=spark-query &\n"
    + WAIT_FOR.format("sskafka group describe billing | grep -q 'MEMBERS *2'")
    + WAIT_FOR.format("sskafka group readers clicks | grep -q spark-query"),
    "docs/transactions.md": ORDERS
    + "$ sskafka topic create invoices\n"
    + f"$ python -c '{OPEN_TRANSACTION}' localhost:9092 &\n"
    + WAIT_FOR.format("sskafka transaction list | grep -q 'billing-7.*Ongoing'"),
}
OPERATOR_PAGES = {
    "docs/cores.md": "",
    "docs/tools.md": "$ sskafka cluster up -n 4 --set super.users=User:ANONYMOUS"
    " --set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
    "$ sskafka topic create orders -p 4 -r 3 && sskafka topic create bills -r 3\n"
    "$ sskafka topic create orders-eu -p 4 -r 2\n"
    "$ echo secret > secret.txt\n"
    "$ echo k:hello | sskafka topic produce orders --key-separator : -p 0\n"
    "$ sskafka topic consume orders -g billing -o start -n 1\n"
    "$ mkdir data && for one in data/orders-0 data/__consumer_offsets-0 metadata/__cluster_metadata-0;"
    " do ln -s $(ls -d $PWD/sskafka-cluster/broker-*/$one | head -1) data; done\n",
    "docs/security.md": "$ printf 'process.roles=broker,controller\\nnode.id=1\\nlisteners=PLAINTEXT://localhost:0\\n"
    "log.dirs=formatted\\n' > server.properties\n",
}
PAGES = {**FIRST_PAGES, **CLIENT_PAGES, **OPERATOR_PAGES}
"""They are in three files of tests, because each file is run by one worker."""
OWN_TESTS = {"docs/operations.md": "tests/integration/test_operations_page.py"}
SPARK_PAGES = {
    "docs/tutorial-pipelines.md": "tests/pages/test_tutorial_page.py",
    "docs/deploy-spark.md": "tests/pages/test_deploy_page.py",
    "docs/pipelines.md": "tests/pages/test_pipelines_page.py",
}
"""Pages that `make spark-pages` runs, the first and the last also `make spark-test`, and the tests that do so."""
KAFKA_PAGES = dict.fromkeys(("README.md", "docs/acls.md", "docs/quotas.md"), "tests/interop/test_page_lines.py")
"""Pages with lines for Apache Kafka's tools or kcat, which `make interop` runs."""
CONTAINER_LINES = {
    "docker build -t sskafka .": (),
    "docker run -p 9092:9092 sskafka": ("localhost:9092",),
    "docker run -p 9092:9092 -e SSKAFKA_ADVERTISED_LISTENERS=PLAINTEXT://my-host:9092 sskafka": ("my-host:9092",),
    "docker compose -f deploy/docker-compose.yaml up --build": ("localhost:9092", "localhost:9093", "localhost:9094"),
    "docker compose up --build": (),
}
"""Lines of all pages that tests/image/test_docker_lines.py runs, and the Kafka addresses that clients are told then."""
