"""Pictures inside of a page."""

from __future__ import annotations

import base64


def data_uri(kind: str, content: bytes) -> str:
    """Return a picture of a kind, such as `jpeg`, as an address that holds all of it."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
