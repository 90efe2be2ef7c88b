"""What can go wrong between bytes and messages."""


class MalformedMessageError(Exception):
    """Bytes that are not the message they should be. The only error that decoding lets out."""


class UnencodableMessageError(Exception):
    """A message whose values do not fit the wire format of the version asked for."""


class UnsupportedVersionError(Exception):
    """A version that the message does not have."""
