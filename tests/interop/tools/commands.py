"""The calls of Kafka's command-line tools, in the order in which they run. `{...}` is filled in for each system."""

from dataclasses import dataclass, field

AT = "--bootstrap-server {at}"


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    """The name of the script in Kafka's bin directory."""
    arguments: str
    stdin: str = ""
    files: dict[str, str] = field(default_factory=dict)
    """Files to write first, by the name that stands for them in the arguments."""
    is_sorted: bool = False
    """Whether the lines have no order of their own (hash maps, threads)."""
    has_counts: bool = False
    """Whether the numbers are measurements or counts that differ in every run."""
    seconds: int = 30
    until: str = ""
    """What the output must have; the call is repeated until it does, where the tool reads in the background."""
    never_ends: bool = False
    """Whether the tool goes on until it is stopped: it gets a JVM of its own, and is stopped when it prints `until`."""


def shell(arguments: str, until: str) -> Call:
    """The metadata shell reads in the background: at times it is asked too early, and at times it hangs."""
    return Call("kafka-metadata-shell", arguments, until=until, seconds=5)


MAIN = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
}

REASSIGNMENT = '{"version":1,"partitions":[{"topic":"tools-orders","partition":0,"replicas":[1]}]}'
ELECTION = '{"partitions":[{"topic":"tools-orders","partition":0}]}'
DELETION = '{"version":1,"partitions":[{"topic":"tools-orders","partition":0,"offset":1}]}'

CALLS = (
    Call(
        "kafka-topics",
        f"--create --topic tools-orders --partitions 3 --replication-factor 1 --config retention.ms=86400000 {AT}",
    ),
    Call("kafka-topics", f"--create --topic tools-orders {AT}"),
    Call("kafka-topics", f"--create --if-not-exists --topic tools-orders {AT}"),
    Call("kafka-topics", f"--create --topic tools-many --partitions 1 --replication-factor 3 {AT}"),
    Call("kafka-topics", f"--create --topic tools-odd --config no.such=1 {AT}"),
    Call("kafka-topics", f"--create --topic tools/odd {AT}"),
    Call("kafka-topics", f"--create --topic tools-placed --replica-assignment 1,1 {AT}"),
    Call("kafka-topics", f"--create --topic tools.dotted {AT}"),
    Call("kafka-topics", f"--list --topic tools.* {AT}"),
    Call("kafka-topics", f"--list --exclude-internal --topic tools-o.* {AT}"),
    Call("kafka-topics", f"--describe --topic tools-orders {AT}"),
    Call("kafka-topics", f"--describe --topic tools-none {AT}"),
    Call("kafka-topics", f"--describe --topic tools-none --if-exists {AT}"),
    Call("kafka-topics", f"--describe --under-replicated-partitions {AT}"),
    Call("kafka-topics", f"--describe --unavailable-partitions {AT}"),
    Call("kafka-topics", f"--describe --under-min-isr-partitions {AT}"),
    Call("kafka-topics", f"--describe --at-min-isr-partitions --topic tools-placed {AT}"),
    Call("kafka-topics", f"--describe --topics-with-overrides --topic tools-.* {AT}"),
    Call("kafka-topics", f"--alter --topic tools-placed --partitions 4 {AT}"),
    Call("kafka-topics", f"--alter --topic tools-placed --partitions 2 {AT}"),
    Call("kafka-topics", f"--alter --topic tools-none --partitions 2 {AT}"),
    Call("kafka-topics", f"--delete --topic tools-placed {AT}"),
    Call("kafka-topics", f"--delete --topic tools-placed {AT}"),
    Call("kafka-topics", f"--delete --if-exists --topic tools-placed {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2 {AT}"),
    Call("kafka-configs", f"--describe --entity-type topics --entity-name tools-orders {AT}"),
    Call("kafka-configs", f"--describe --all --entity-type topics --entity-name tools-orders {AT}", is_sorted=True),
    Call(
        "kafka-configs",
        f"--alter --entity-type topics --entity-name tools-orders --add-config segment.ms=3600000,cleanup.policy=[compact,delete] {AT}",
    ),
    Call("kafka-configs", f"--describe --entity-type topics --entity-name tools-orders {AT}", is_sorted=True),
    Call(
        "kafka-configs",
        f"--alter --entity-type topics --entity-name tools-orders --delete-config segment.ms,cleanup.policy {AT}",
    ),
    Call("kafka-configs", f"--alter --entity-type topics --entity-name tools-orders --delete-config flush.ms {AT}"),
    Call("kafka-configs", f"--alter --entity-type topics --entity-name tools-orders --add-config no.such=1 {AT}"),
    Call(
        "kafka-configs", f"--alter --entity-type topics --entity-name tools-orders --add-config retention.ms=soon {AT}"
    ),
    Call("kafka-configs", f"--describe --entity-type topics --entity-name tools-none {AT}"),
    Call("kafka-configs", f"--describe --all --entity-type brokers --entity-name 1 {AT}", is_sorted=True),
    Call("kafka-configs", f"--describe --entity-type brokers --entity-default {AT}"),
    Call("kafka-configs", f"--describe --entity-type brokers --entity-name 1 {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.threads {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-name 1 --add-config node.id=5 {AT}"),
    Call("kafka-configs", f"--describe --entity-type broker-loggers --entity-name 1 {AT}", is_sorted=True),
    Call("kafka-configs", f"--describe --entity-type groups --entity-name tools-readers {AT}", is_sorted=True),
    Call(
        "kafka-configs",
        f"--alter --entity-type groups --entity-name tools-readers --add-config consumer.session.timeout.ms=50000 {AT}",
    ),
    Call("kafka-configs", f"--describe --entity-type client-metrics --entity-name tools-metrics {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2 {AT}"),
    Call("kafka-configs", f"--describe --entity-type brokers --entity-default {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-default --delete-config log.cleaner.threads {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-name 1 --add-config tools.unknown=1 {AT}"),
    Call("kafka-configs", f"--alter --entity-type broker-loggers --entity-name 1 --add-config root=ERROR {AT}"),
    Call("kafka-configs", f"--alter --entity-type broker-loggers --entity-name 1 --add-config no.such=DEBUG {AT}"),
    Call("kafka-configs", f"--alter --entity-type broker-loggers --entity-name 1 --delete-config root {AT}"),
    Call(
        "kafka-configs",
        f"--alter --entity-type client-metrics --entity-name tools-metrics --add-config interval.ms=1000,metrics=[a,b],match=[client_id=x] {AT}",
    ),
    Call("kafka-configs", f"--describe --entity-type client-metrics {AT}"),
    Call(
        "kafka-configs",
        f"--alter --entity-type client-metrics --entity-name tools-metrics --add-config interval.ms=5 {AT}",
    ),
    Call(
        "kafka-configs",
        f"--alter --entity-type client-metrics --entity-name tools-metrics --delete-config interval.ms,metrics,match {AT}",
    ),
    Call("kafka-configs", f"--describe --entity-type brokers --entity-name 1 {AT}"),
    Call("kafka-configs", f"--alter --entity-type brokers --entity-name 1 --delete-config tools.unknown {AT}"),
    Call("kafka-configs", f"--describe --entity-type users {AT}"),
    Call("kafka-configs", f"--describe --entity-type clients {AT}"),
    Call("kafka-configs", f"--describe --entity-type ips {AT}"),
    Call(
        "kafka-console-producer",
        f"--topic tools-orders --reader-property parse.key=true --reader-property key.separator=: {AT}",
        stdin="a:1\nb:2\nc:3\n",
    ),
    Call(
        "kafka-console-producer",
        f"--topic tools-orders --compression-codec zstd --request-required-acks 1 --batch-size 10 --reader-property parse.key=true --reader-property key.separator=: {AT}",
        stdin="d:4\ne:5\n",
    ),
    Call(
        "kafka-console-producer",
        f"--topic tools-orders --sync --command-property enable.idempotence=false --reader-property parse.key=true --reader-property key.separator=: {AT}",
        stdin="f:6\n",
    ),
    Call(
        "kafka-console-producer",
        f"--topic tools-orders --reader-property parse.key=true {AT}",
        stdin="without separator\n",
    ),
    Call("kafka-console-producer", f"--topic tools-dumped --compression-codec gzip {AT}", stdin="one\ntwo\n"),
    Call(
        "kafka-console-consumer",
        f"--topic tools-orders --from-beginning --max-messages 6 --timeout-ms 20000 --formatter-property print.key=true {AT}",
        is_sorted=True,
    ),
    Call(
        "kafka-console-consumer",
        f"--topic tools-orders --partition 0 --offset earliest --timeout-ms 2000 --formatter-property print.offset=true --formatter-property print.partition=true {AT}",
    ),
    Call("kafka-console-consumer", f"--topic tools-orders --partition 0 --offset 100 --timeout-ms 1500 {AT}"),
    Call(
        "kafka-console-consumer",
        f"--include tools-ord.* --from-beginning --max-messages 6 --timeout-ms 20000 --group tools-readers --isolation-level read_committed {AT}",
        is_sorted=True,
    ),
    Call(
        "kafka-console-consumer",
        f"--topic tools-orders --from-beginning --max-messages 6 --timeout-ms 20000 --group tools-modern --command-property group.protocol=consumer {AT}",
        is_sorted=True,
    ),
    Call("kafka-get-offsets", f"--topic tools-orders {AT}"),
    Call("kafka-get-offsets", f"--topic tools-orders --time earliest {AT}"),
    Call("kafka-get-offsets", f"--topic tools-orders --time -1 --partitions 0,2 {AT}"),
    Call("kafka-get-offsets", f"--topic tools-orders --time max-timestamp {AT}", has_counts=True),
    Call("kafka-get-offsets", f"--topic tools-orders --time earliest-local {AT}"),
    Call("kafka-get-offsets", f"--topic tools-orders --time latest-tiered {AT}"),
    Call("kafka-get-offsets", f"--topic-partitions tools-orders:0-2 {AT}"),
    Call("kafka-get-offsets", f"--topic tools-none {AT}"),
    Call("kafka-consumer-groups", f"--list {AT}", is_sorted=True),
    Call("kafka-consumer-groups", f"--list --state {AT}", is_sorted=True),
    Call("kafka-consumer-groups", f"--list --state Empty --type classic {AT}", is_sorted=True),
    Call("kafka-consumer-groups", f"--describe --group tools-readers {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-readers --offsets --verbose {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-readers --members {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-readers --members --verbose {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-readers --state {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-readers --state --verbose {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-modern --state {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-modern --offsets {AT}"),
    Call("kafka-consumer-groups", f"--describe --group tools-none {AT}"),
    Call(
        "kafka-consumer-groups",
        f"--reset-offsets --group tools-readers --topic tools-orders --to-earliest --dry-run {AT}",
    ),
    Call(
        "kafka-consumer-groups",
        f"--reset-offsets --group tools-readers --topic tools-orders:0 --to-offset 1 --execute {AT}",
    ),
    Call("kafka-consumer-groups", f"--reset-offsets --group tools-readers --all-topics --shift-by -1 --execute {AT}"),
    Call(
        "kafka-consumer-groups",
        f"--reset-offsets --group tools-readers --topic tools-orders --to-datetime 2020-01-01T00:00:00.000 --dry-run {AT}",
    ),
    Call(
        "kafka-consumer-groups",
        f"--reset-offsets --group tools-readers --topic tools-orders --by-duration PT1H --dry-run {AT}",
    ),
    Call(
        "kafka-consumer-groups",
        f"--reset-offsets --group tools-readers --topic tools-orders --to-current --export {AT}",
    ),
    Call(
        "kafka-consumer-groups", f"--reset-offsets --group tools-readers --topic tools-none --to-latest --execute {AT}"
    ),
    Call("kafka-consumer-groups", f"--delete-offsets --group tools-readers --topic tools-orders {AT}"),
    Call("kafka-consumer-groups", f"--delete --group tools-readers {AT}"),
    Call("kafka-consumer-groups", f"--delete --group tools-readers {AT}"),
    Call("kafka-groups", f"--list {AT}", is_sorted=True),
    Call("kafka-groups", f"--list --consumer {AT}", is_sorted=True),
    Call("kafka-groups", f"--list --group-type classic {AT}", is_sorted=True),
    Call("kafka-groups", f"--list --share {AT}"),
    Call("kafka-share-groups", f"--list {AT}"),
    Call("kafka-share-groups", f"--describe --group tools-none {AT}"),
    Call("kafka-streams-groups", f"--list {AT}"),
    Call("kafka-streams-groups", f"--describe --group tools-none {AT}"),
    Call("kafka-delete-records", f"--offset-json-file {{deletion}} {AT}", files={"deletion": DELETION}),
    Call("kafka-log-dirs", f"--describe --topic-list tools-orders {AT}", has_counts=True),
    Call("kafka-log-dirs", f"--describe --topic-list tools-orders --broker-list 1 {AT}", has_counts=True),
    Call("kafka-log-dirs", f"--describe --broker-list 9 {AT}"),
    Call(
        "kafka-reassign-partitions",
        f"--generate --topics-to-move-json-file {{topics}} --broker-list 1 {AT}",
        files={"topics": '{"version":1,"topics":[{"topic":"tools-orders"}]}'},
    ),
    Call(
        "kafka-reassign-partitions", f"--execute --reassignment-json-file {{plan}} {AT}", files={"plan": REASSIGNMENT}
    ),
    Call(
        "kafka-reassign-partitions",
        f"--execute --throttle 1000000 --reassignment-json-file {{plan}} {AT}",
        files={"plan": REASSIGNMENT},
    ),
    Call(
        "kafka-reassign-partitions",
        f"--verify --preserve-throttles --reassignment-json-file {{plan}} {AT}",
        files={"plan": REASSIGNMENT},
    ),
    Call("kafka-reassign-partitions", f"--verify --reassignment-json-file {{plan}} {AT}", files={"plan": REASSIGNMENT}),
    Call("kafka-reassign-partitions", f"--cancel --reassignment-json-file {{plan}} {AT}", files={"plan": REASSIGNMENT}),
    Call("kafka-reassign-partitions", f"--list {AT}"),
    Call(
        "kafka-reassign-partitions",
        f"--execute --reassignment-json-file {{plan}} {AT}",
        files={"plan": REASSIGNMENT.replace("[1]", "[9]")},
    ),
    Call("kafka-leader-election", f"--election-type preferred --topic tools-orders --partition 0 {AT}"),
    Call(
        "kafka-leader-election", f"--election-type unclean --path-to-json-file {{plan}} {AT}", files={"plan": ELECTION}
    ),
    Call("kafka-leader-election", f"--election-type preferred --topic tools-none --partition 0 {AT}"),
    Call("kafka-broker-api-versions", f"{AT}"),
    Call("kafka-cluster", f"cluster-id {AT}"),
    Call("kafka-cluster", f"list-endpoints {AT}", has_counts=True),
    Call("kafka-cluster", f"unregister --id 99 {AT}"),
    Call("kafka-features", f"{AT} describe", has_counts=True),
    Call("kafka-features", f"{AT} upgrade --feature group.version=1"),
    Call("kafka-features", f"{AT} upgrade --metadata 4.3-IV0 --dry-run"),
    Call("kafka-features", f"{AT} downgrade --feature transaction.version=1 --dry-run"),
    Call("kafka-features", f"{AT} disable --feature group.version --dry-run"),
    Call("kafka-features", "version-mapping --release-version 4.3-IV0"),
    Call("kafka-features", f"{AT} feature-dependencies --feature transaction.version=2"),
    Call("kafka-metadata-quorum", f"{AT} describe --status", has_counts=True),
    Call("kafka-metadata-quorum", f"{AT} describe --replication", has_counts=True),
    Call("kafka-metadata-quorum", f"{AT} describe --replication --human-readable", has_counts=True),
    Call(
        "kafka-metadata-quorum",
        f"{AT} remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ",
    ),
    Call(
        "kafka-producer-perf-test",
        f"--topic tools-orders --num-records 100 --record-size 100 --throughput -1 {AT}",
        has_counts=True,
    ),
    Call(
        "kafka-producer-perf-test",
        f"--topic tools-orders --num-records 100 --record-size 100 --throughput 1000 --transactional-id tools-transaction --transaction-duration-ms 50 {AT}",
        has_counts=True,
    ),
    Call(
        "kafka-consumer-perf-test",
        f"--topic tools-orders --num-records 50 --timeout 20000 --group tools-perf {AT}",
        has_counts=True,
    ),
    Call("kafka-verifiable-producer", f"--topic tools-orders --max-messages 5 {AT}", has_counts=True, is_sorted=True),
    Call(
        "kafka-verifiable-consumer",
        f"--topic tools-dumped --group-id tools-verifiable --max-messages 2 --reset-policy earliest {AT}",
        has_counts=True,
        is_sorted=True,
    ),
    Call(
        "kafka-e2e-latency",
        f"{AT} --topic tools-latency --num-records 20 --record-size 20 --producer-acks 1",
        has_counts=True,
    ),
    Call("kafka-transactions", f"{AT} list", has_counts=True),
    Call("kafka-transactions", f"{AT} list --duration-filter 1000000"),
    Call("kafka-transactions", f"{AT} describe --transactional-id tools-transaction", has_counts=True),
    Call("kafka-transactions", f"{AT} describe --transactional-id tools-none"),
    Call("kafka-transactions", f"{AT} describe-producers --topic tools-latency --partition 0", has_counts=True),
    Call("kafka-transactions", f"{AT} find-hanging --broker-id 1"),
    Call("kafka-transactions", f"{AT} abort --topic tools-orders --partition 0 --start-offset 1"),
    Call("kafka-transactions", f"{AT} forceTerminateTransaction --transactional-id tools-transaction"),
    Call("kafka-client-metrics", f"--list {AT}"),
    Call("kafka-client-metrics", f"--describe {AT}"),
    Call("kafka-client-metrics", f"--alter --name tools-metrics --metrics org.apache.kafka. --interval 10000 {AT}"),
    Call("kafka-acls", f"--list {AT}"),
    Call("kafka-acls", f"--add --allow-principal User:a --operation Read --topic tools-orders {AT}"),
    Call("kafka-acls", f"--remove --force --topic tools-orders {AT}"),
    Call("kafka-delegation-tokens", f"--describe --command-config {{none}} {AT}", files={"none": ""}),
    Call(
        "kafka-delegation-tokens",
        f"--create --max-life-time-period -1 --command-config {{none}} {AT}",
        files={"none": ""},
    ),
    Call(
        "kafka-streams-application-reset", f"--application-id tools-streams --input-topics tools-orders --dry-run {AT}"
    ),
    Call(
        "kafka-dump-log",
        "--files {data}/tools-dumped-0/00000000000000000000.log --print-data-log --deep-iteration",
        has_counts=True,
    ),
    Call("kafka-dump-log", "--files {data}/tools-dumped-0/00000000000000000000.index --verify-index-only"),
    Call("kafka-dump-log", "--files {data}/tools-dumped-0/00000000000000000000.timeindex --index-sanity-check"),
    Call("kafka-dump-log", "--files {data}/tools-dumped-0/none.log"),
    Call(
        "kafka-replica-verification",
        "--broker-list {at} --topics-include tools-dumped --time -2 --report-interval-ms 1000",
        is_sorted=True,
        has_counts=True,
        until="max lag is",
        never_ends=True,
    ),
    Call("kafka-metadata-shell", "--snapshot {data}/__cluster_metadata-0/00000000000000000000.log ls /"),
    shell("--snapshot {metadata} ls /image", until="topics"),
    shell("--snapshot {metadata} find /image/topics/byName/tools-orders", until="tools-orders/2"),
    shell("--snapshot {metadata} cat /image/topics/byName/tools-orders/0", until="replicas"),
    shell("--snapshot {metadata} tree /image/configs/TOPIC:tools-orders", until="retention"),
    shell("--snapshot {metadata} ls /image/none", until="no such file"),
    shell("--snapshot {metadata} mkdir /image", until="invalid choice"),
    shell("--snapshot {snapshot} find /image/topics/byName/__consumer_offsets", until="offsets/3"),
    shell("--snapshot {snapshot} cat /image/cluster/brokers/1", until="listenerName='PLAINTEXT'"),
    shell("--snapshot {snapshot} tree /image/features", until="finalized"),
    Call("kafka-metadata-shell", "--snapshot {data}/none.checkpoint ls /"),
    Call(
        "kafka-configs",
        f"--alter --entity-type brokers --entity-name 1 --add-config listeners=[{{listeners}},EXTRA://127.0.0.1:{{port}}] {AT}",
    ),
    Call(
        "kafka-configs",
        f"--alter --entity-type brokers --entity-name 1 --add-config listeners=[{{listeners}},EXTRA://127.0.0.1:{{port}}],listener.security.protocol.map=[{{map}},EXTRA:PLAINTEXT] {AT}",
    ),
    Call(
        "kafka-configs",
        f"--describe --entity-type brokers --entity-name 1 {AT}",
        until="EXTRA:PLAINTEXT sensitive",
        is_sorted=True,
    ),
    Call(
        "kafka-configs",
        f"--alter --entity-type brokers --entity-name 1 --delete-config listeners,listener.security.protocol.map {AT}",
    ),
    Call("kafka-storage", "info --config {properties}"),
    Call("kafka-storage", "random-uuid"),
)
