"""The properties with which each client library connects to a secure cluster.

login.kafka()          Java's and our own clients: `client.properties`
login.librdkafka()     confluent-kafka, kcat
login.aiokafka()       keyword arguments of AIOKafkaProducer, AIOKafkaConsumer, ...
login.kafka_python()   keyword arguments of KafkaProducer, KafkaConsumer, ...
"""

import ssl
from typing import Any

from sskafka.model.security.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE
from sskafka.model.security.mechanisms import PLAIN
from sskafka.model.values import value

_BREAKS_JAAS = frozenset(" \t\r\n\f=;\"'\\")


def jaas_text(text: str) -> str:
    """Return the text as a quoted value of a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jaas_user_option(user: str, password: str) -> str:
    """Return the option of PlainLoginModule that adds a user. Raise ValueError for a name that JAAS cannot have."""
    if not user or not _BREAKS_JAAS.isdisjoint(user):
        raise ValueError(f"{user!r} cannot be the name of a user: it is empty, or has blanks, quotes, '=', ';' or '\\'")
    return f"user_{user}={jaas_text(password)}"


@value
class ClientLogin:
    bootstrap_servers: str
    protocol: str
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    ca_file: str = ""
    mechanism: str = ""
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"ClientLogin({self.bootstrap_servers!r}, {self.protocol!r}, user={self.user!r})"

    @property
    def _has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def _has_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def kafka(self) -> dict[str, str]:
        properties = {"bootstrap.servers": self.bootstrap_servers, "security.protocol": self.protocol}
        if self._has_tls:
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        if self._has_sasl:
            module = PLAIN_LOGIN_MODULE if self.mechanism == PLAIN else SCRAM_LOGIN_MODULE
            login = f"username={jaas_text(self.user)} password={jaas_text(self.password)}"
            properties |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": f"{module} required {login};"}
        return properties

    def librdkafka(self) -> dict[str, str]:
        properties = {"bootstrap.servers": self.bootstrap_servers, "security.protocol": self.protocol}
        if self._has_tls:
            properties["ssl.ca.location"] = self.ca_file
        if self._has_sasl:
            properties |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        return properties

    def aiokafka(self) -> dict[str, Any]:
        options = self._python_options()
        if self._has_tls:
            options["ssl_context"] = ssl.create_default_context(cafile=self.ca_file)
        return options

    def kafka_python(self) -> dict[str, Any]:
        return {**self._python_options(), **({"ssl_cafile": self.ca_file} if self._has_tls else {})}

    def _python_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers,
            "security_protocol": self.protocol,
        }
        if self._has_sasl:
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.user,
                "sasl_plain_password": self.password,
            }
        return options
