"""What the door distinguishes when something goes wrong: whose fault it is, and whether trying again is safe."""


class DoorError(Exception):
    """The request cannot be carried out; the text is for the client."""

    kind = "failed"


class InvalidRequestError(DoorError):
    """It cannot be meant: a bad name, a negative offset, a record that is too large."""

    kind = "invalid"


class NotThereError(DoorError):
    """There is no such topic or partition."""

    kind = "missing"


class NotTakenError(DoorError):
    """Nothing was written or read, because of something that may pass: trying again does no harm."""

    kind = "unavailable"


class UnclearError(DoorError):
    """A record was written, and may or may not stay: trying again could double it."""

    kind = "unclear"
