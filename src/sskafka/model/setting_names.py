"""Names of the settings that brokers use, by the type of their values; written by docs/generate.py."""

from typing import Literal, TypeAlias

# fmt: off
Boolean: TypeAlias = Literal[
    "auto.create.topics.enable", "delete.topic.enable", "unclean.leader.election.enable",
    "auto.leader.rebalance.enable", "controlled.shutdown.enable", "log.preallocate", "log.cleaner.enable",
    "transaction.partition.verification.enable", "transaction.two.phase.commit.enable",
    "allow.everyone.if.no.acl.found", "ssl.allow.dn.changes", "ssl.allow.san.changes", "console.enable",
    "console.read.only", "lab.api"
]
Float: TypeAlias = Literal[
    "log.cleaner.io.max.bytes.per.second", "log.cleaner.io.buffer.load.factor", "log.cleaner.min.cleanable.ratio"
]
Integer: TypeAlias = Literal[
    "node.id", "num.partitions", "default.replication.factor", "min.insync.replicas",
    "leader.imbalance.check.interval.seconds", "socket.send.buffer.bytes", "socket.receive.buffer.bytes",
    "socket.request.max.bytes", "socket.listen.backlog.size", "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms", "connections.max.idle.ms", "max.connections", "max.connections.per.ip",
    "max.connection.creation.rate", "queued.max.requests", "queued.max.request.bytes", "request.timeout.ms",
    "fetch.max.bytes", "max.incremental.fetch.session.cache.slots", "max.request.partition.size.limit",
    "log.dir.failure.timeout.ms", "num.recovery.threads.per.data.dir", "log.segment.bytes", "log.roll.ms",
    "log.roll.hours", "log.roll.jitter.ms", "log.roll.jitter.hours", "log.index.interval.bytes",
    "log.index.size.max.bytes", "log.flush.interval.messages", "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms", "log.flush.offset.checkpoint.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms", "log.segment.delete.delay.ms", "log.retention.ms",
    "log.retention.hours", "log.retention.bytes", "log.retention.check.interval.ms", "log.cleaner.threads",
    "log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.size", "log.cleaner.backoff.ms",
    "log.cleaner.delete.retention.ms", "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms",
    "log.message.timestamp.before.max.ms", "log.message.timestamp.after.max.ms", "message.max.bytes",
    "compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "producer.id.expiration.ms",
    "producer.id.expiration.check.interval.ms", "log.initial.task.delay.ms", "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms", "controller.quorum.election.backoff.max.ms",
    "controller.quorum.append.linger.ms", "controller.quorum.request.timeout.ms", "controller.quorum.retry.backoff.ms",
    "controller.quorum.fetch.max.bytes", "controller.quorum.fetch.snapshot.max.bytes", "controller.socket.timeout.ms",
    "metadata.log.segment.bytes", "metadata.log.segment.ms", "metadata.max.retention.bytes",
    "metadata.max.retention.ms", "metadata.log.max.record.bytes.between.snapshots",
    "metadata.log.max.snapshot.interval.ms", "metadata.max.idle.interval.ms", "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms", "initial.broker.registration.timeout.ms", "replica.lag.time.max.ms",
    "replica.fetch.min.bytes", "replica.fetch.max.bytes", "replica.fetch.response.max.bytes",
    "replica.fetch.wait.max.ms", "replica.fetch.backoff.ms", "replica.socket.timeout.ms",
    "replica.socket.receive.buffer.bytes", "replica.high.watermark.checkpoint.interval.ms", "num.replica.fetchers",
    "group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.initial.rebalance.delay.ms",
    "group.max.size", "group.coordinator.append.linger.ms", "group.consumer.session.timeout.ms",
    "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.max.heartbeat.interval.ms", "group.consumer.assignment.interval.ms",
    "group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms", "group.consumer.max.size",
    "offsets.topic.num.partitions", "offsets.topic.replication.factor", "offsets.topic.segment.bytes",
    "offsets.topic.compression.codec", "offsets.load.buffer.size", "offsets.commit.timeout.ms",
    "offsets.retention.minutes", "offsets.retention.check.interval.ms", "offset.metadata.max.bytes",
    "transaction.max.timeout.ms", "transactional.id.expiration.ms", "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor", "transaction.state.log.min.isr", "transaction.state.log.segment.bytes",
    "transaction.state.log.load.buffer.size", "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "transaction.remove.expired.transaction.cleanup.interval.ms", "add.partitions.to.txn.retry.backoff.ms",
    "add.partitions.to.txn.retry.backoff.max.ms", "connections.max.reauth.ms",
    "connection.failed.authentication.delay.ms", "sasl.server.max.receive.size", "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms", "delegation.token.expiry.check.interval.ms",
    "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.jwks.endpoint.refresh.ms", "quota.window.num",
    "quota.window.size.seconds", "replication.quota.window.num", "replication.quota.window.size.seconds",
    "alter.log.dirs.replication.quota.window.num", "alter.log.dirs.replication.quota.window.size.seconds",
    "controller.quota.window.num", "controller.quota.window.size.seconds", "log.dir.partition.base",
    "socket.request.arrival.timeout.ms", "log.scrub.interval.ms", "log.scrub.bytes.per.second", "audit.log.max.bytes",
    "audit.log.backups", "audit.log.max.per.second", "otel.exporter.otlp.timeout", "otel.metric.export.interval"
]
List: TypeAlias = Literal[
    "process.roles", "listeners", "log.dir", "log.dirs", "cordoned.log.dirs", "log.cleanup.policy",
    "controller.quorum.voters", "controller.quorum.bootstrap.servers", "controller.listener.names",
    "group.coordinator.rebalance.protocols", "group.consumer.assignors", "sasl.enabled.mechanisms",
    "ssl.enabled.protocols", "ssl.cipher.suites", "sasl.oauthbearer.expected.audience", "http.allowed.hosts",
    "otel.resource.attributes"
]
OptionalInteger: TypeAlias = Literal[
    "log.retention.minutes", "leader.replication.throttled.rate", "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second", "num.replica.alter.log.dirs.threads",
    "controller.quorum.first.election.delay.ms"
]
OptionalList: TypeAlias = Literal[
    "advertised.listeners"
]
OptionalText: TypeAlias = Literal[
    "broker.rack", "inter.broker.listener.name", "metadata.log.dir", "replica.selector.class", "sasl.jaas.config",
    "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.key", "ssl.keystore.certificate.chain",
    "ssl.key.password", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.certificates",
    "delegation.token.secret.key", "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.scope", "sasl.oauthbearer.token.endpoint.url", "cluster.id",
    "topics.file", "otel.exporter.otlp.headers"
]
Text: TypeAlias = Literal[
    "listener.security.protocol.map", "security.inter.broker.protocol", "max.connections.per.ip.overrides",
    "log.message.timestamp.type", "compression.type", "group.consumer.migration.policy", "authorizer.class.name",
    "super.users", "sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol", "ssl.keystore.type",
    "ssl.truststore.type", "ssl.client.auth", "ssl.protocol", "ssl.endpoint.identification.algorithm",
    "ssl.principal.mapping.rules", "sasl.oauthbearer.sub.claim.name", "http.listener", "http.security.protocol",
    "console.schema.dir", "adr.listener", "partitioner.hash", "audit.log", "log.format", "otel.exporter.otlp.endpoint",
    "otel.service.name"
]
