"""Errors of the ADR-0011 server: they say whose fault a failure is, and whether it is safe to retry."""


class AdrError(Exception):
    """The request cannot be carried out; the text is for the client."""

    kind = "failed"


class InvalidRequestError(AdrError):
    """It cannot be meant: a bad name, a negative offset, a record that is too large."""

    kind = "invalid"


class NotThereError(AdrError):
    """There is no such topic or partition."""

    kind = "missing"


class NotTakenError(AdrError):
    """Nothing was written or read, because of something that may pass: trying again does no harm."""

    kind = "unavailable"


class UnclearError(AdrError):
    """A record was written, and may or may not stay: trying again could double it."""

    kind = "unclear"
