"""Responses that contain only an error code."""

import pytest

from sskafka.model.errors import ErrorCode
from sskafka.servers.kafka.frames import error_frame
from sskafka.wire.apis import API_BY_KEY, ApiKey
from sskafka.wire.codec import decode
from sskafka.wire.header import decode_response_header


@pytest.mark.parametrize("key", API_BY_KEY)
def test_every_version_that_can_say_so_says_what_is_wrong(key: int) -> None:
    """An answer without the error would pass for a success: better none."""
    api = API_BY_KEY[key]
    for version in range(api.min_version, api.max_version + 1):
        frame = error_frame(key, version, 7, ErrorCode.UNSUPPORTED_VERSION)
        if frame is not None:
            correlation_id, start = decode_response_header(key, version, frame, 4)
            assert correlation_id == 7
            assert decode(api.response_class(), version, frame, start).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("key", "version"),
    [(ApiKey.OFFSET_FETCH, 1), (ApiKey.FIND_COORDINATOR, 4), (ApiKey.METADATA, 3), (ApiKey.METADATA, 99), (999, 0)],
)
def test_there_is_no_answer_without_a_place_for_the_error(key: int, version: int) -> None:
    assert error_frame(key, version, 7, ErrorCode.UNSUPPORTED_VERSION) is None


def test_consumers_of_groups_hear_that_there_are_none() -> None:
    assert error_frame(ApiKey.FIND_COORDINATOR, 3, 7, ErrorCode.UNSUPPORTED_VERSION) is not None
    assert error_frame(ApiKey.JOIN_GROUP, 5, 7, ErrorCode.UNSUPPORTED_VERSION) is not None
