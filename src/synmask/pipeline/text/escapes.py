"""Moses' escapes, which models that read words do not know."""

import re

MOSES_ESCAPES = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#124;": "|", "&#91;": "[", "&#93;": "]",
    "&amp;": "&",
}  # fmt: skip
MOSES_ESCAPE = re.compile("|".join(MOSES_ESCAPES))


def unescape(text: str) -> str:
    """The text without Moses' escapes. Other entities stay, and so does "&times" without its semicolon."""
    return MOSES_ESCAPE.sub(lambda match: MOSES_ESCAPES[match[0]], text)
