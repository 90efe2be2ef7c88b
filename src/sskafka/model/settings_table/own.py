"""Settings that Apache Kafka does not have."""

from sskafka.model.setting import AtLeast, Between, Importance, OneOf, Setting, Type, Update

STRING, LIST, BOOLEAN, INT, LONG = Type.STRING, Type.LIST, Type.BOOLEAN, Type.INT, Type.LONG
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, CLUSTER_WIDE = Update.READ_ONLY, Update.CLUSTER_WIDE

# fmt: off
OWN = (
    Setting("cluster.id", STRING, None, None, READ_ONLY, HIGH,
            "Id with which an empty data directory is formatted; derived from the voters when not set.", own=True),
    Setting("http.listener", STRING, "", None, READ_ONLY, HIGH,
            "Address (host:port) of the HTTP server; port 0 selects a free port; empty: no HTTP server.", own=True),
    Setting("http.allowed.hosts", LIST, (), None, READ_ONLY, MEDIUM,
            "Host names, beside the listener's own, that HTTP requests may be addressed to.", own=True),
    Setting("adr.listener", STRING, "", None, READ_ONLY, HIGH,
            "Address (host:port) of the server of ADR-0011; port 0 selects a free port; empty: no such server.",
            own=True),
    Setting("lab.api", BOOLEAN, False, None, READ_ONLY, MEDIUM,
            "Opens /kraft/v1/*, where callers may vote and name leaders.", own=True),
    Setting("partitioner.hash", STRING, "murmur2", OneOf(("murmur2", "murmur3")), READ_ONLY, MEDIUM,
            "Hash that picks the partition of a key where the broker or a bundled client does.", own=True),
    Setting("log.dir.partition.base", INT, 0, Between(0, 1), READ_ONLY, LOW,
            "Number of the first partition in directory names; fixed once a directory is formatted.", own=True),
    Setting("controller.quorum.first.election.delay.ms", INT, None, AtLeast(0), READ_ONLY, LOW,
            "How long this voter waits before the first election of a new cluster; a random time when not set.",
            own=True),
    Setting("socket.request.arrival.timeout.ms", INT, 30000, AtLeast(1000), READ_ONLY, LOW,
            "A connection is closed when a request has begun to arrive and nothing of its rest comes for this long.",
            own=True),
    Setting("log.scrub.interval.ms", LONG, 604800000, AtLeast(-1), CLUSTER_WIDE, MEDIUM,
            "Time from the beginning of one verification of all logs to the next. Damaged batches are replaced by "
            "those of other replicas, or else not served. -1: never.", own=True),
    Setting("log.scrub.bytes.per.second", LONG, 8388608, AtLeast(1), CLUSTER_WIDE, LOW,
            "How fast the verification reads logs; it uses at most a twentieth of a core.", own=True),
    Setting("topics.file", STRING, None, None, READ_ONLY, MEDIUM,
            "JSON file with topics that are created once as many brokers as voters are there.", own=True),
    Setting("audit.log", STRING, "", None, READ_ONLY, MEDIUM,
            "File to which every decision of the authorizer is written, a line of JSON each; empty: no audit log.",
            own=True),
    Setting("audit.log.max.bytes", INT, 104857600, AtLeast(1024), READ_ONLY, LOW,
            "Size from which on the audit log is renamed, and a new file is begun.", own=True),
    Setting("audit.log.backups", INT, 5, AtLeast(0), READ_ONLY, LOW,
            "Number of renamed audit logs that are kept.", own=True),
    Setting("audit.log.max.per.second", INT, 1000, AtLeast(1), READ_ONLY, LOW,
            "Largest number of lines that are written to the audit log in a second; further ones are counted.",
            own=True),
)
