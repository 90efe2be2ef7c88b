"""What `make docs` changes in the pages: links to files outside of docs/, which the site does not have, become text.

On a page of the repository such a link leads to the file; on the site the path says where the file is.
"""

import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+)([^)\s#]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every page."""
    depth = page.file.src_uri.count("/")

    def text(found: re.Match[str]) -> str:
        title, up, path = found.groups()
        if up.count("/") <= depth:
            return found[0]
        return title if path in title.replace("`", "") else f"{title} (`{path}`)"

    return LINK.sub(text, markdown)
