"""Settings that Apache Kafka does not have."""

from sskafka.model.setting import AtLeast, Between, Importance, OneOf, Setting, Type, Update

STRING, LIST, BOOLEAN, INT, LONG = Type.STRING, Type.LIST, Type.BOOLEAN, Type.INT, Type.LONG
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, CLUSTER_WIDE = Update.READ_ONLY, Update.CLUSTER_WIDE

# fmt: off
SSKAFKA = (
    Setting("cluster.id", STRING, None, None, READ_ONLY, HIGH,
            "Cluster id with which an empty log directory is formatted; if not set, it is derived from the voters.",
            own=True),
    Setting("http.listener", STRING, "", None, READ_ONLY, HIGH,
            "Address (host:port) of the HTTP server; port 0 selects a free port; empty: no HTTP server.", own=True),
    Setting("http.security.protocol", STRING, "PLAINTEXT", OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
            READ_ONLY, HIGH,
            "Security protocol of the HTTP server. Its `ssl.` and `sasl.` settings may have the prefix "
            "`listener.name.http.`. With SASL, clients send user and password (basic) or a token (bearer).", own=True),
    Setting("http.allowed.hosts", LIST, (), None, READ_ONLY, MEDIUM,
            "Host names that HTTP requests may be addressed to, besides that of the listener.", own=True),
    Setting("console.enable", BOOLEAN, True, None, READ_ONLY, MEDIUM,
            "Whether the HTTP server serves the console, a page at / that shows the cluster.", own=True),
    Setting("console.read.only", BOOLEAN, False, None, READ_ONLY, MEDIUM,
            "Whether the routes under /api/v1, and so the console, refuse changes. ACLs still decide what a user may "
            "see, and other routes and Kafka clients are not affected.", own=True),
    Setting("console.schema.dir", STRING, "", None, READ_ONLY, LOW,
            "Directory with schemas by which the console shows records: TOPIC-value.avsc and TOPIC-key.avsc (Avro), "
            "TOPIC-value.desc or TOPIC-value.MESSAGE.desc (descriptor sets of Protobuf); empty: none.", own=True),
    Setting("adr.listener", STRING, "", None, READ_ONLY, HIGH,
            "Address (host:port) of the server of ADR-0011; port 0 selects a free port; empty: no such server.",
            own=True),
    Setting("lab.api", BOOLEAN, False, None, READ_ONLY, MEDIUM,
            "Enables /kraft/v1/*, with which HTTP clients can vote and announce leaders.", own=True),
    Setting("partitioner.hash", STRING, "murmur2", OneOf(("murmur2", "murmur3")), READ_ONLY, MEDIUM,
            "Hash that maps a key to a partition, in the broker and in the bundled clients.", own=True),
    Setting("log.dir.partition.base", INT, 0, Between(0, 1), READ_ONLY, LOW,
            "Number of the first partition in directory names. It cannot change after a directory is formatted.",
            own=True),
    Setting("controller.quorum.first.election.delay.ms", INT, None, AtLeast(0), READ_ONLY, LOW,
            "How long this voter waits before the first election of a new cluster; if not set, a random time.",
            own=True),
    Setting("socket.request.arrival.timeout.ms", INT, 30000, AtLeast(1000), READ_ONLY, LOW,
            "A connection is closed if the rest of a request does not arrive within this time after its last bytes.",
            own=True),
    Setting("log.scrub.interval.ms", LONG, 604800000, AtLeast(-1), CLUSTER_WIDE, MEDIUM,
            "Time from the beginning of one verification of all logs to the next. Damaged batches are replaced by "
            "those of other replicas, or else not served. -1: never.", own=True),
    Setting("log.scrub.bytes.per.second", LONG, 8388608, AtLeast(1), CLUSTER_WIDE, LOW,
            "How fast the verification reads logs; it uses at most a twentieth of a core.", own=True),
    Setting("topics.file", STRING, None, None, READ_ONLY, MEDIUM,
            "JSON file with topics that are created once as many brokers as voters are registered.", own=True),
    Setting("audit.log", STRING, "", None, READ_ONLY, MEDIUM,
            "File to which decisions of the authorizer and failed logins are written as lines of JSON; empty: none.",
            own=True),
    Setting("audit.log.max.bytes", INT, 104857600, AtLeast(1024), READ_ONLY, LOW,
            "Size at which the audit log is renamed and a new file is started.", own=True),
    Setting("audit.log.backups", INT, 5, AtLeast(0), READ_ONLY, LOW,
            "Number of renamed audit logs to keep.", own=True),
    Setting("audit.log.max.per.second", INT, 1000, AtLeast(1), READ_ONLY, LOW,
            "Maximum number of lines per second that are written to the audit log; further lines are dropped and "
            "counted.",
            own=True),
    Setting("log.format", STRING, "text", OneOf(("text", "json")), READ_ONLY, LOW,
            "Format of the broker's own log on stderr: text, or one JSON object per line.", own=True),
    Setting("otel.exporter.otlp.endpoint", STRING, "", None, READ_ONLY, LOW,
            "Base URL of an OpenTelemetry collector, to which the HTTP process pushes metrics (OTLP/HTTP with JSON, to "
            "`/v1/metrics`); empty: none.", own=True),
    Setting("otel.exporter.otlp.headers", Type.PASSWORD, None, None, READ_ONLY, LOW,
            "HTTP headers for the collector: a list of name=value.", own=True),
    Setting("otel.exporter.otlp.timeout", INT, 10000, AtLeast(1), READ_ONLY, LOW,
            "Milliseconds after which a push is given up.", own=True),
    Setting("otel.metric.export.interval", INT, 60000, AtLeast(100), READ_ONLY, LOW,
            "Milliseconds between two pushes of metrics.", own=True),
    Setting("otel.service.name", STRING, "sskafka", None, READ_ONLY, LOW,
            "Name of the service in pushed metrics.", own=True),
    Setting("otel.resource.attributes", LIST, (), None, READ_ONLY, LOW,
            "Further attributes of this node in pushed metrics: a list of name=value.", own=True),
)
