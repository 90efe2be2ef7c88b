"""Errors of encoding and decoding messages."""


class MalformedMessageError(Exception):
    """The bytes are not a valid message. This is the only error that decoding raises."""


class UnencodableMessageError(Exception):
    """A value of the message cannot be encoded in the requested version."""


class UnsupportedVersionError(Exception):
    """The message does not have this version."""
