"""A broker with a listener for each security protocol, its users and certificates."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
from broker_process import BrokerProcess
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.certificates import Certificates

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = "alice-secret"
ISSUER, AUDIENCE = "https://issuer.example", "kafka"


class SecureBroker(BrokerProcess):
    def __init__(self, directory: Path, settings: dict[str, object] | None = None) -> None:
        self.certificates = Certificates(directory / "certificates")
        self.key_store = self.certificates.issue("server.pem", "localhost", "127.0.0.1", unit="server")
        self._signing_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        key_set = directory / "keys.json"
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._signing_key.public_key()))
        key_set.write_text(json.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}))
        users = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'user_alice="{PASSWORD}" user_admin="admin-secret";'
        )
        super().__init__(
            directory / "broker",
            {
                "listeners": ",".join(f"{protocol}://localhost:0" for protocol in PROTOCOLS),
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
                "listener.name.sasl_ssl.plain.sasl.jaas.config": users,
                "sasl.oauthbearer.jwks.endpoint.url": key_set.as_uri(),
                "sasl.oauthbearer.expected.issuer": ISSUER,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
                "ssl.client.auth": "requested",
                "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
                **self.certificates.server_settings(self.key_store),
                **(settings or {}),
            },
        )

    def present_expired_certificate(self) -> None:
        """Give an expired certificate to the SSL listener. Call it before the start."""
        expired = self.certificates.issue("expired.pem", "localhost", is_expired=True)
        self.settings["listener.name.ssl.ssl.keystore.location"] = expired

    def at(self, protocol: str) -> str:
        """The address of the listener with this protocol."""
        return self.bootstrap.split(",")[PROTOCOLS.index(protocol)]

    def add_scram_users(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.at("PLAINTEXT")})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for future in admin.alter_user_scram_credentials([upsertion]).values():
                future.result(20)

    def token(self, **claims: Any) -> str:
        now = int(time.time())
        content = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600, **claims}
        return jwt.encode(content, self._signing_key, algorithm="RS256", headers={"kid": "k1"})

    def librdkafka(self, protocol: str, mechanism: str = "", password: str = PASSWORD) -> dict[str, Any]:
        """Properties of confluent-kafka for a user named alice."""
        config: dict[str, Any] = {"bootstrap.servers": self.at(protocol), "security.protocol": protocol, "log_level": 0}
        if protocol.endswith("SSL"):
            config["ssl.ca.location"] = str(self.certificates.ca)
        if mechanism == "OAUTHBEARER":
            config |= {"sasl.mechanism": mechanism, "oauth_cb": lambda _: (self.token(), time.time() + 600)}
        elif mechanism:
            config |= {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password}
        return config
