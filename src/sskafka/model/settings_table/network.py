"""Listeners, sockets, connections and requests."""

from sskafka.model.listeners import ConnectionCounts
from sskafka.model.setting import INT_MAX, AtLeast, Importance, OneOf, Setting, Type, Update
from sskafka.model.settings_table.unsupported import no_wait_for_authorizer, purgatory, threads

INT, LONG, STRING, LIST, BOOLEAN = Type.INT, Type.LONG, Type.STRING, Type.LIST, Type.BOOLEAN
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Update.READ_ONLY, Update.PER_BROKER, Update.CLUSTER_WIDE

# fmt: off
NETWORK = (
    Setting("listeners", LIST, ("PLAINTEXT://:9092",), None, PER_BROKER, HIGH,
            "Addresses to listen on, NAME://host:port each; no host means every interface, port 0 any free port. While "
            "the broker runs, listeners can be added, and removed unless they are advertised. As in Apache Kafka, a "
            "listener that is added while the broker runs is advertised only after a restart with it in "
            "server.properties or in a metadata snapshot; a new address of an open listener is stored and used "
            "after a restart."),
    Setting("advertised.listeners", LIST, None, None, READ_ONLY, HIGH,
            "Addresses that brokers send to clients, if they differ from the listeners."),
    Setting("listener.security.protocol.map", STRING,
            "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", None, PER_BROKER, LOW,
            "Security protocol of each listener name, as NAME:PROTOCOL pairs."),
    Setting("inter.broker.listener.name", STRING, None, None, READ_ONLY, MEDIUM,
            "Name of the listener over which brokers connect to each other; if not set, the first listener."),
    Setting("security.inter.broker.protocol", STRING, "PLAINTEXT",
            OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), READ_ONLY, MEDIUM,
            "If inter.broker.listener.name is not set: the listener between brokers is the one with this name, if it "
            "exists."),
    no_wait_for_authorizer("early.start.listeners", LIST, None, None, READ_ONLY, HIGH,
            "Listeners that open before the authorizer is ready."),
    Setting("socket.send.buffer.bytes", INT, -1, None, READ_ONLY, HIGH,
            "Size of the send buffer of a connection; -1: chosen and adapted by the operating system.",
            kafka_default=102400),
    Setting("socket.receive.buffer.bytes", INT, -1, None, READ_ONLY, HIGH,
            "Size of the receive buffer of a connection; -1: chosen and adapted by the operating system.",
            kafka_default=102400),
    Setting("socket.request.max.bytes", INT, 104857600, AtLeast(1), READ_ONLY, HIGH,
            "Maximum size of a request; a larger request closes its connection."),
    Setting("socket.listen.backlog.size", INT, 50, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum number of connections that wait to be accepted."),
    Setting("socket.connection.setup.timeout.ms", LONG, 10000, None, READ_ONLY, MEDIUM,
            "Timeout of connection attempts of this broker to other nodes."),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30000, None, READ_ONLY, MEDIUM,
            "Maximum timeout of connection attempts, which grows after each failure."),
    Setting("connections.max.idle.ms", LONG, 600000, None, READ_ONLY, MEDIUM,
            "A connection on which no request arrives for this long is closed."),
    Setting("max.connections", INT, INT_MAX, AtLeast(0), CLUSTER_WIDE, MEDIUM,
            "Maximum number of open connections."),
    Setting("max.connections.per.ip", INT, INT_MAX, AtLeast(0), CLUSTER_WIDE, MEDIUM,
            "Maximum number of connections from one address."),
    Setting("max.connections.per.ip.overrides", STRING, "", ConnectionCounts(), CLUSTER_WIDE, MEDIUM,
            "Maximum number of connections of single addresses, as address:count pairs."),
    Setting("max.connection.creation.rate", INT, INT_MAX, AtLeast(0), CLUSTER_WIDE, MEDIUM,
            "Maximum number of new connections per second."),
    Setting("queued.max.requests", INT, 500, AtLeast(1), READ_ONLY, HIGH,
            "Number of requests in progress above which the broker stops reading from a connection."),
    Setting("queued.max.request.bytes", LONG, -1, None, READ_ONLY, MEDIUM,
            "Maximum number of bytes of large requests that are received and handled at the same time, over all client "
            "listeners; controller listeners share a limit of the same size. -1: 256 MB."),
    Setting("request.timeout.ms", INT, 30000, None, READ_ONLY, HIGH,
            "How long this broker waits for the response of another node."),
    Setting("fetch.max.bytes", INT, 57671680, AtLeast(1024), READ_ONLY, MEDIUM,
            "Maximum size of a fetch response, whatever the consumer requests."),
    Setting("max.incremental.fetch.session.cache.slots", INT, 1000, AtLeast(0), READ_ONLY, MEDIUM,
            "Maximum number of incremental fetch sessions; further consumers send full requests."),
    Setting("max.request.partition.size.limit", INT, 2000, AtLeast(1), READ_ONLY, MEDIUM,
            "Maximum number of partitions in a response to DescribeTopicPartitions."),
    threads("num.network.threads", INT, 3, AtLeast(1), CLUSTER_WIDE, HIGH,
            "Number of network threads in Apache Kafka."),
    threads("num.io.threads", INT, 8, AtLeast(1), CLUSTER_WIDE, HIGH,
            "Number of request handler threads in Apache Kafka."),
    threads("background.threads", INT, 10, AtLeast(1), CLUSTER_WIDE, HIGH,
            "Number of background threads in Apache Kafka."),
    purgatory("fetch.purgatory.purge.interval.requests", INT, 1000, None, READ_ONLY, MEDIUM,
            "Purge interval of the fetch purgatory in Apache Kafka."),
    purgatory("producer.purgatory.purge.interval.requests", INT, 1000, None, READ_ONLY, MEDIUM,
            "Purge interval of the produce purgatory in Apache Kafka."),
    purgatory("delete.records.purgatory.purge.interval.requests", INT, 1, None, READ_ONLY, MEDIUM,
            "Purge interval of the DeleteRecords purgatory in Apache Kafka."),
    purgatory("share.fetch.purgatory.purge.interval.requests", INT, 1000, None, READ_ONLY, MEDIUM,
            "Purge interval of the share fetch purgatory in Apache Kafka."),
)
