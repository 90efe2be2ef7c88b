"""Failures of Spark itself: Java dies, or does not start. Python reports only the call that failed because of it.

Java was killed, or is out of memory    py4j: connection refused, broken pipe, an empty answer
Java does not start                     pyspark: [JAVA_GATEWAY_EXITED]
Spark refuses a setting                 pyspark: a Java exception
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from sskafka.pipelines.runner.errors import AGAIN, SHORT_OF_MEMORY, PipelineRunError, explained
from sskafka.pipelines.session import java_exit_code
from sskafka.pipelines.spark_log import written_log

JAVA_END_WAIT_S = 2.0
_NO_JAVA = "JAVA_GATEWAY_EXITED"
_NETWORK_ERRORS = ("Py4JError", "Py4JNetworkError")
"""Errors of py4j if Java does not respond. Errors that Java returns have other types."""


@contextmanager
def reporting_spark_failures(next_step: str = AGAIN) -> Iterator[None]:
    """Report the death of Java, and errors of pyspark, as a PipelineRunError with a sentence and a next step."""
    try:
        yield
    except Exception as error:
        reported = _reported(error, next_step)
        if reported is None:
            raise
        raise reported from error


def _reported(error: Exception, next_step: str) -> PipelineRunError | None:
    """Return the error to report instead; None if `error` is about something else."""
    is_lost = has_lost_java(error) or has_lost_java(error.__cause__)
    code = java_exit_code(JAVA_END_WAIT_S if is_lost else 0)
    if code is not None:
        return PipelineRunError(*java_end(code, next_step))
    if is_lost:
        return PipelineRunError(f"the connection to the Java process of Spark was lost: {error}", next_step)
    if _NO_JAVA in str(error):
        return PipelineRunError(
            "Java has ended before Spark was started; its own message is above",
            "correct spark.driver.memory, spark.driver.extraJavaOptions or SPARK_SUBMIT_OPTS, which Java reads",
        )
    if type(error).__module__.partition(".")[0] in {"pyspark", "py4j", "grpc"}:
        return PipelineRunError(explained(error))
    return None


def has_lost_java(error: BaseException | None) -> bool:
    return isinstance(error, ConnectionError | EOFError) or type(error).__name__ in _NETWORK_ERRORS


def java_end(code: int, next_step: str) -> tuple[str, str]:
    """Return how Java has ended, and what to do."""
    if code >= 0:
        log = written_log()
        details = f"; Spark's log {log} has the details" if log else ""
        return f"the Java process of Spark has exited with code {code}", f"{next_step}{details}"
    memory = f"; {SHORT_OF_MEMORY}" if -code == signal.SIGKILL else ""
    return f"the Java process of Spark was ended by signal {-code}", f"{next_step}{memory}"
