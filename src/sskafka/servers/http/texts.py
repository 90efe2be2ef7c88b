"""Text of JSON bodies that goes into requests of the Kafka protocol."""

from typing import Annotated

from pydantic import AfterValidator


def check_text(text: str) -> str:
    """Return `text`. Raise ValueError for half a surrogate pair, which JSON allows and UTF-8 does not."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"not valid text: {error.reason}") from error
    return text


Text = Annotated[str, AfterValidator(check_text)]
