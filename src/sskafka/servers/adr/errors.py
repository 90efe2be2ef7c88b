"""Errors of the ADR-0011 server: they say whose fault a failure is, and whether it is safe to retry."""


class AdrServiceError(Exception):
    """The request failed; the text is for the client."""

    kind = "failed"


class InvalidRequestError(AdrServiceError):
    """The request is invalid: a bad name, a negative offset, a record that is too large."""

    kind = "invalid"


class NotAllowedError(AdrServiceError):
    """The client may not do this."""

    kind = "denied"


class NotFoundError(AdrServiceError):
    """The topic or partition does not exist."""

    kind = "missing"


class NotAppliedError(AdrServiceError):
    """A temporary error: nothing was written or read, safe to retry."""

    kind = "unavailable"


class OutcomeUnknownError(AdrServiceError):
    """Outcome unknown: the record was sent and may or may not be stored; a retry could duplicate it."""

    kind = "unclear"
