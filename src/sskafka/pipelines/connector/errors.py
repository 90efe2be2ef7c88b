"""Errors of the connector. Spark shows their text, so each message says what to do."""


class ConnectorError(Exception):
    """Base of the connector's own errors."""


class OptionError(ConnectorError, ValueError):
    """An option that is missing, unknown or cannot be used; the message names it."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option {option}: {problem}")
        self.option = option
        self.problem = problem

    def __reduce__(self) -> tuple[type["OptionError"], tuple[str, str]]:
        return type(self), (self.option, self.problem)


class DataLossError(ConnectorError):
    """The offsets that the query wants to read no longer exist, or never did."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Data may have been lost: retention deleted it before it was read, or the topic was deleted "
            "and created again. If that is acceptable, set failOnDataLoss=false: the query then continues with the "
            "records that exist"
        )
        self.what = what

    def __reduce__(self) -> tuple[type["DataLossError"], tuple[str]]:
        return type(self), (self.what,)


class ReadTimeoutError(ConnectorError):
    """The brokers did not return records that exist according to their offsets."""


class CommitFailedError(ConnectorError):
    """A batch was decided, but the brokers aborted one of its transactions afterwards: output is missing for now."""


class NotDecidedError(ConnectorError):
    """A batch was not committed, and no part of it is visible: Spark may write it again."""


class DriverTransactionEndedError(NotDecidedError):
    """A batch in the driver's transaction was not committed. Spark's next attempt does not use this transaction, so it
    does not fail for the same reason: pipelines start the query again."""


class CheckpointError(ConnectorError):
    """Checkpoint and control topic contradict each other: continuing would lose rows or write them twice."""


class FencedError(ConnectorError):
    """A newer run of the same query has taken over."""
