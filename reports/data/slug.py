"""Names for addresses inside the page: short, equal in every report, safe in a URL."""

import hashlib
import re


def slug(text: str) -> str:
    """Plain words stay as they are; anything longer or stranger becomes a digest."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,24}", text):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:10] if text else ""
