"""Scripts with differences that are known and not mended yet, by the area they belong to. The list only shrinks."""

_BY_AREA = {
    "apis": (
        "topics.deletion",
        "topics.description",
        "topics.growth",
        "topics.names",
        "produce.bad_batches",
        "produce.bad_requests",
        "produce.topic_settings",
        "produce.idempotent_producers",
        "cluster.features",
        "cluster.quorum",
    ),
    "all": ("random",),
    "fetch": (
        "fetch.deleted_topic",
        "fetch.offsets_and_sizes",
        "fetch.sessions",
        "fetch.wrong_targets",
        "offsets.by_timestamp",
        "cluster.log_directories",
    ),
    "groups": (
        "consumer_groups.life",
        "consumer_groups.mixed_protocols",
        "consumer_groups.patterns",
        "consumer_groups.static_members",
        "consumer_groups.wrong_heartbeats",
    ),
    "txn": (
        "transactions.first_version",
        "transactions.initialization",
        "transactions.listing",
        "transactions.markers",
        "transactions.second_version",
        "transactions.wrong_requests",
    ),
    "replicas": (
        "cluster.elections",
        "cluster.one_broker_reassignments",
        "reassignments.moves",
        "reassignments.elections",
        "reassignments.wrong_broker",
        "reassignments.forwarded",
        "reassignments.coordinators_elsewhere",
    ),
}
PENDING = {script: area for area, scripts in _BY_AREA.items() for script in scripts}
