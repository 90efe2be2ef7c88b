import json
import logging

from sskafka.runtime.log_format import BROKER, DETAILS, JsonFormatter


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
