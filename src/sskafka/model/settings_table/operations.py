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
            "Java class of a policy that may reject new topics."),
    java_class("alter.config.policy.class.name", CLASS, None, None, READ_ONLY, LOW,
            "Java class of a policy that may reject changes of configs."),
    java_class("client.quota.callback.class", CLASS, None, None, READ_ONLY, LOW,
            "Java class that computes client quotas."),
    Setting("quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Number of samples by which client quotas are measured."),
    Setting("quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of these samples."),
    Setting("replication.quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Number of samples by which replication quotas are measured."),
    Setting("replication.quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of these samples."),
    Setting("alter.log.dirs.replication.quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Number of samples by which quotas of moves between log directories are measured."),
    Setting("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of these samples."),
    Setting("controller.quota.window.num", INT, 11, AtLeast(1), READ_ONLY, LOW,
            "Number of samples by which the quota controller_mutation_rate is measured."),
    Setting("controller.quota.window.size.seconds", INT, 1, AtLeast(1), READ_ONLY, LOW,
            "Length of each of these samples."),
    metric_reporter("metric.reporters", LIST, (), None, CLUSTER_WIDE, LOW,
            "Java classes that report metrics. SSKafka serves metrics over HTTP.",
            kafka_default=("org.apache.kafka.common.metrics.JmxReporter",)),
    sampled_metrics("metrics.num.samples", INT, 2, AtLeast(1), READ_ONLY, LOW,
            "Number of samples of rates and averages."),
    sampled_metrics("metrics.sample.window.ms", LONG, 30000, AtLeast(1), READ_ONLY, LOW,
            "Length of each of these samples."),
    sampled_metrics("metrics.recording.level", STRING, "INFO", OneOf(("INFO", "DEBUG", "TRACE")), READ_ONLY, LOW,
            "Level of detail of the metrics."),
    sampled_metrics("kafka.metrics.polling.interval.secs", INT, 10, AtLeast(1), READ_ONLY, LOW,
            "Poll interval of kafka.metrics.reporters."),
    metric_reporter("kafka.metrics.reporters", LIST, (), None, READ_ONLY, LOW,
            "Java classes that report the older kind of metrics."),
    telemetry("telemetry.max.bytes", INT, 1048576, AtLeast(1), READ_ONLY, LOW,
            "Maximum size of the metrics that a client pushes in one request."),
    config_provider("config.providers", LIST, (), None, CLUSTER_WIDE, LOW,
            "Java classes that read settings from other sources."),
)
