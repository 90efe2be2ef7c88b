"""Errors of authentication."""


class SaslError(Exception):
    """An exchange failed. The text may be sent to the client: it does not tell which part of a credential was wrong."""

    def __init__(self, text: str, user: str = "") -> None:
        """`user`: the name that the client has given, for the audit log."""
        super().__init__(text)
        self.user = user
