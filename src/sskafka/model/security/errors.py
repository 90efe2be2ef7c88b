"""Errors of authentication."""


class SaslError(Exception):
    """An exchange failed. The text may be sent to the client: it does not tell which part of a credential was wrong."""
