"""What goes wrong in the connector, in words that a data engineer can act on. Spark shows them as text."""


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
    """Offsets that the query was to read are no longer there, or never were."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Data may have been lost: it aged out before it was read, or the topic was deleted and made "
            "again. If that is acceptable, set failOnDataLoss=false: the query then goes on with what is there"
        )
        self.what = what

    def __reduce__(self) -> tuple[type["DataLossError"], tuple[str]]:
        return type(self), (self.what,)


class ReadTimeoutError(ConnectorError):
    """The brokers did not hand out records that they had announced."""


class CommitFailedError(ConnectorError):
    """A batch was decided, but brokers aborted a transaction of it after that: the output lacks records for now."""


class NotDecidedError(ConnectorError):
    """A batch was not committed, and nothing of it is visible: Spark may write it again."""


class CheckpointError(ConnectorError):
    """Checkpoint and control topic contradict each other: going on would lose rows or write them twice."""


class FencedError(ConnectorError):
    """A newer run of the same query has taken over."""
