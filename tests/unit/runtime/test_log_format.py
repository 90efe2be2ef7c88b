import io
import json
import logging

from sskafka.runtime.log_format import BROKER, DETAILS, JsonFormatter, TextFormatter


def formatted(record: logging.LogRecord) -> dict[str, object]:
    line = JsonFormatter(7, BROKER).format(record)
    assert "\n" not in line
    return json.loads(line)  # type: ignore[no-any-return]


def test_a_line_has_the_keys_that_do_not_change() -> None:
    record = logging.makeLogRecord(
        {"name": "sskafka.x", "levelname": "INFO", "msg": "%d\nlines", "args": (2,), "created": 1.5, "threadName": "t"}
    )
    assert formatted(record) == {
        "time": "1970-01-01T00:00:01.500+00:00",
        "level": "INFO",
        "logger": "sskafka.x",
        "message": "2\nlines",
        "node_id": 7,
        "process": "broker",
        "thread": "t",
    }


def test_errors_and_details_have_keys_of_their_own() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        found = formatted(
            logging.makeLogRecord({"exc_info": (ValueError, error, error.__traceback__), DETAILS: {"a": 1}})
        )
    assert str(found["error"]).endswith("ValueError: no")
    assert found["details"] == {"a": 1}


def written(message: str, *arguments: object, error: Exception | None = None) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter("%(levelname)s %(message)s"))
    trace = None if error is None else (type(error), error, None)
    handler.handle(logging.LogRecord("sskafka.test", logging.WARNING, "", 1, message, arguments, trace))
    return stream.getvalue()


def test_a_message_of_text_is_one_line() -> None:
    line = written("%s may not READ GROUP %s", "User:bob", "g\n2026-11-17 INFO all is well\r\x1b[2J\u2028x")
    assert line == "WARNING User:bob may not READ GROUP g\\n2026-11-17 INFO all is well\\r\\x1b[2J\\u2028x\n"


def test_other_texts_are_unchanged() -> None:
    assert written("topic %s", "Grüße") == "WARNING topic Grüße\n"


def test_tracebacks_have_their_lines() -> None:
    assert written("failed", error=ValueError("why")).splitlines()[1:] == ["ValueError: why"]
