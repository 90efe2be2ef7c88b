"""Quotas, policies, metrics."""

from functools import partial

from sskafka.model.setting import AtLeast, Importance, OneOf, Setting, Type, Update
from sskafka.model.settings_table.unsupported import (
    config_provider,
    java_class,
    metric_reporter,
    sampled_metrics,
)

INT, LONG, STRING, LIST, CLASS = Type.INT, Type.LONG, Type.STRING, Type.LIST, Type.CLASS
LOW = Importance.LOW
READ_ONLY, CLUSTER_WIDE = Update.READ_ONLY, Update.CLUSTER_WIDE

telemetry = partial(
    Setting,
    no_effect_because="clients push metrics only where a Java metric reporter asks for them, and none can be loaded",
)

# fmt: off
OPERATIONS = (
    java_class("create.topic.policy.class.name", CLASS, None, None, READ_ONLY, LOW,
            "What may refuse new topics."),
    java_class("alter.config.policy.class.name", CLASS, None, None, READ_ONLY, LOW,
            "What may refuse changes of settings."),
    java_class("client.quota.callback.class", CLASS, None, None, READ_ONLY, LOW,
            "What decides on client quotas."),
    Setting("quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Samples kept for client quotas."),
    Setting("quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of those samples."),
    Setting("replication.quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Samples kept for replication quotas."),
    Setting("replication.quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of those samples."),
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Samples kept for quotas on moves between directories."),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of those samples."),
    Setting("controller.quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Samples kept for quotas on changes of topics."),
    Setting("controller.quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of those samples."),
    metric_reporter("metric.reporters", LIST, (), None, CLUSTER_WIDE, LOW,
            "Java classes that report metrics; ours come over HTTP.",
            kafka_default=("org.apache.kafka.common.metrics.JmxReporter",)),
    sampled_metrics("metrics.num.samples", INT, 2, AtLeast(1), READ_ONLY, LOW,
            "Samples kept for rates and averages."),
    sampled_metrics("metrics.sample.window.ms", LONG, 30000, AtLeast(1), READ_ONLY, LOW,
            "Length of each of those samples."),
    sampled_metrics("metrics.recording.level", STRING, "INFO", OneOf(("INFO", "DEBUG", "TRACE")), READ_ONLY, LOW,
            "How detailed the metrics are."),
    sampled_metrics("kafka.metrics.polling.interval.secs", INT, 10, AtLeast(1), READ_ONLY, LOW,
            "How often kafka.metrics.reporters are asked."),
    metric_reporter("kafka.metrics.reporters", LIST, (), None, READ_ONLY, LOW,
            "Java classes that report the older kind of metrics."),
    telemetry("telemetry.max.bytes", INT, 1048576, AtLeast(1), READ_ONLY, LOW,
            "Largest batch of metrics taken from a client."),
    config_provider("config.providers", LIST, (), None, CLUSTER_WIDE, LOW,
            "Java classes that fetch settings from elsewhere."),
)
