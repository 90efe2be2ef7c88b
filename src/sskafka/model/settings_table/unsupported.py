"""Constructors of rows for settings of features that this broker does not have.

`refused` kinds stop the start when they have any value but the default; `no_effect` kinds are accepted and reported.
Each reason reads on after "SETTING=VALUE: " or "accepted, has no effect here, because ".
"""

from functools import partial

from sskafka.model.setting import Setting

NO_TLS = (
    "this TLS setting is not supported: it selects parts of Java, and TLS is done by OpenSSL here; remove the setting"
)
NO_SASL = (
    "this SASL setting is not supported; remove the setting (the mechanisms PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and "
    "OAUTHBEARER are supported, Kerberos is not)"
)
NO_AUTHORIZER = "the only authorizer is StandardAuthorizer, which does not know the setting; remove the setting"
NO_SUCH_TOKEN_SETTING = "there is no such setting of delegation tokens; the key is delegation.token.secret.key"
NO_QUOTAS = "quotas of clients are set with AlterClientQuotas (kafka-configs); remove the setting"

tls = partial(Setting, refused_because=NO_TLS)
sasl = partial(Setting, refused_because=NO_SASL)
java_class = partial(
    Setting,
    refused_because="Java classes cannot be loaded into this broker, which is written in Python; remove the setting",
)
metric_reporter = partial(
    Setting,
    refused_because="Java metric reporters cannot be loaded; remove the setting, set http.listener and collect the "
    "metrics from /metrics over HTTP",
)
config_provider = partial(
    Setting,
    refused_because="Java config providers cannot be loaded; remove the setting and pass secrets and generated values "
    "as environment variables (SSKAFKA_LOG_DIRS for log.dirs)",
)
tiered_storage = partial(
    Setting,
    refused_because="tiered storage is not supported; remove the setting and give log.dirs the disk space that the "
    "retention needs",
)
share_groups = partial(
    Setting, refused_because="share groups are not supported; remove the setting and use consumer groups"
)
streams_groups = partial(
    Setting,
    refused_because="streams groups are not supported; remove the setting and run Kafka Streams with "
    "group.protocol=classic",
)
dynamic_quorum = partial(
    Setting,
    refused_because="the members of the metadata quorum are fixed; remove the setting and list every controller in "
    "controller.quorum.voters",
)

threads = partial(Setting, no_effect_because="one event loop serves all connections, requests and groups")
buffers = partial(Setting, no_effect_because="buffers are freed after each write, not kept for reuse")
purgatory = partial(Setting, no_effect_because="a waiting request is removed as soon as it is answered")
tiered_tuning = partial(
    Setting,
    no_effect_because="it applies to tiered storage, which is not supported (Apache Kafka also ignores it "
    "while remote.log.storage.system.enable is false)",
)
share_state = partial(
    Setting, no_effect_because="share groups are not supported, so the topic __share_group_state is never created"
)
sampled_metrics = partial(
    Setting, no_effect_because="metrics are plain counters here; the monitoring system computes rates and averages"
)
no_wait_for_authorizer = partial(
    Setting,
    no_effect_because="the listeners of a broker open before the ACLs are read; until then only super users are served",
)
