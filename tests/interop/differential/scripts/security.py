"""ACLs, delegation tokens, quotas, SCRAM, SASL and telemetry, on clusters that have none of them switched on."""

from typing import Any

from differential.session import Session

ANY_ACL: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("DescribeAcls", "all", ANY_ACL),
    ("DescribeAcls", "unknown types", {**ANY_ACL, "operation": 0}),
    (
        "CreateAcls",
        "one",
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": "t",
                    "resource_pattern_type": 3,
                    "principal": "User:a",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
    ),
    (
        "CreateAcls",
        "a bad principal",
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": "t",
                    "resource_pattern_type": 3,
                    "principal": "a",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
    ),
    ("CreateAcls", "none", {"creations": []}),
    ("DeleteAcls", "all", {"filters": [ANY_ACL]}),
    ("DeleteAcls", "none", {"filters": []}),
    ("CreateDelegationToken", "plain", {"max_lifetime_ms": -1}),
    (
        "CreateDelegationToken",
        "a renewer",
        {"max_lifetime_ms": -1, "renewers": [{"principal_type": "User", "principal_name": "a"}]},
    ),
    ("RenewDelegationToken", "unknown", {"hmac": b"x", "renew_period_ms": 1}),
    ("ExpireDelegationToken", "unknown", {"hmac": b"x", "expiry_time_period_ms": 1}),
    ("DescribeDelegationToken", "all", {"owners": None}),
    ("DescribeDelegationToken", "none", {"owners": []}),
    ("DescribeClientQuotas", "all", {"components": []}),
    (
        "DescribeClientQuotas",
        "strictly",
        {"components": [{"entity_type": "user", "match_type": 2, "match": None}], "strict": True},
    ),
    (
        "DescribeClientQuotas",
        "an unknown entity",
        {"components": [{"entity_type": "nonsense", "match_type": 0, "match": "x"}]},
    ),
    (
        "DescribeClientQuotas",
        "an unknown match",
        {"components": [{"entity_type": "user", "match_type": 9, "match": "x"}]},
    ),
    (
        "DescribeClientQuotas",
        "twice",
        {
            "components": [
                {"entity_type": "user", "match_type": 0, "match": "x"},
                {"entity_type": "user", "match_type": 0, "match": "y"},
            ]
        },
    ),
    ("AlterClientQuotas", "none", {"entries": []}),
    ("AlterClientQuotas", "no entity", {"entries": [{"entity": [], "ops": []}]}),
    (
        "AlterClientQuotas",
        "an unknown entity",
        {"entries": [{"entity": [{"entity_type": "nonsense", "entity_name": "x"}], "ops": []}]},
    ),
    (
        "AlterClientQuotas",
        "an unknown key",
        {
            "entries": [
                {"entity": [{"entity_type": "user", "entity_name": "x"}], "ops": [{"key": "nonsense", "value": 1.0}]}
            ]
        },
    ),
    (
        "AlterClientQuotas",
        "only validated",
        {
            "entries": [
                {
                    "entity": [{"entity_type": "client-id", "entity_name": "x"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1000.0}],
                }
            ],
            "validate_only": True,
        },
    ),
    ("DescribeUserScramCredentials", "all", {"users": None}),
    ("DescribeUserScramCredentials", "one", {"users": [{"name": "nobody"}]}),
    ("DescribeUserScramCredentials", "one twice", {"users": [{"name": "nobody"}, {"name": "nobody"}]}),
    ("DescribeUserScramCredentials", "no name", {"users": [{"name": ""}]}),
    ("AlterUserScramCredentials", "none", {}),
    ("AlterUserScramCredentials", "an unknown user", {"deletions": [{"name": "nobody", "mechanism": 1}]}),
    ("AlterUserScramCredentials", "an unknown mechanism", {"deletions": [{"name": "nobody", "mechanism": 9}]}),
    (
        "AlterUserScramCredentials",
        "too few iterations",
        {"upsertions": [{"name": "a", "mechanism": 1, "iterations": 1, "salt": b"s", "salted_password": b"p"}]},
    ),
    ("SaslHandshake", "plain", {"mechanism": "PLAIN"}),
    ("SaslHandshake", "nonsense", {"mechanism": ""}),
    ("SaslAuthenticate", "plain", {"auth_bytes": b"\0a\0b"}),
    ("GetTelemetrySubscriptions", "a new client", {}),
    (
        "PushTelemetry",
        "an unknown client",
        {"client_instance_id": bytes(range(16)), "subscription_id": 5, "metrics": b""},
    ),
    ("ListConfigResources", "client metrics", {"resource_types": [16]}),
)


def switched_off(session: Session) -> None:
    for api, note, fields in REQUESTS:
        if session.versions(api):
            session.ask_each(api, note=note, **fields)
