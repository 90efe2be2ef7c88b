"""JAAS configurations as Kafka's `sasl.jaas.config` has them.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="a" user_alice="b";

One login module, a control flag, options `name="value"`, a semicolon at the end. The options `user_NAME="PASSWORD"` of
PlainLoginModule are the users of a listener; `username` and `password` are the credentials of a client.
"""

import re
from collections.abc import Mapping

from sskafka.model.values import value

PLAIN_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER_PREFIX = "user_"
_CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;"']+))""", re.DOTALL)


class JaasError(ValueError):
    """The text is not a JAAS configuration. The message does not repeat the text, which may contain passwords."""


@value
class LoginModule:
    name: str
    options: Mapping[str, str]

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user name, from the options `user_NAME`."""
        return {
            key.removeprefix(USER_PREFIX): text for key, text in self.options.items() if key.startswith(USER_PREFIX)
        }

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r}, options of {len(self.options)} names)"


def parse_jaas(text: str) -> LoginModule:
    """Return the one login module of a JAAS configuration; raise JaasError, without any secret, if there is none."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ";":
        raise JaasError('expected: LoginModuleClass required name="value" ...; with a semicolon at the end')
    name, flag, *rest = tokens[:-1]
    if ";" in rest:
        raise JaasError("only one login module may be configured")
    if flag.lower() not in _CONTROL_FLAGS:
        raise JaasError(f"after the login module, expected one of {', '.join(sorted(_CONTROL_FLAGS))}")
    if len(rest) % 3:
        raise JaasError('expected name="value" for each option')
    options: dict[str, str] = {}
    for key, equals, option in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if equals != "=":
            raise JaasError('expected name="value" for each option')
        options[key] = option
    return LoginModule(name, options)


def _tokens(text: str) -> list[str]:
    tokens = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError("a quotation mark is not closed")
        quoted = match[1] if match[1] is not None else match[2]
        tokens.append(match[3] or match[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        position = match.end()
    return tokens
