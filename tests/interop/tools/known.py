"""Commands whose output differs, with the reason."""

from tools.commands import Call

KNOWN: dict[tuple[str, str], str] = {
    ("kafka-configs", "--all --entity-type brokers"): "settings of SSKafka's own, and the defaults of ADR 0006",
    ("kafka-configs", "--describe --entity-type broker-loggers"): "each system has its own loggers",
    (
        "kafka-dump-log",
        ".index --verify",
    ): "Apache Kafka fills the index of an active segment with zeros; here it grows",
    (
        "kafka-metadata-shell",
        "tree /image/features",
    ): "share and streams groups are not supported, so they are switched off",
    (
        "kafka-metadata-shell",
        "cat /image/cluster/brokers/1",
    ): "share and streams groups are not among the features that the broker supports",
    ("kafka-share-groups", "--describe"): "share groups are not supported",
    ("kafka-streams-groups", "--describe"): "streams groups are not supported",
}


def reason_for(call: Call) -> str | None:
    return next(
        (reason for (tool, part), reason in KNOWN.items() if tool == call.tool and part in call.arguments), None
    )
