"""Moses' escapes, which models that read words do not know."""

import re
from collections.abc import Sequence

MOSES_ESCAPES = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#124;": "|", "&#91;": "[", "&#93;": "]",
    "&amp;": "&",
}  # fmt: skip
MOSES_ESCAPE = re.compile("|".join(MOSES_ESCAPES))


def unescaped(tokens: Sequence[str]) -> list[str]:
    """Moses tokens without escapes."""
    return [MOSES_ESCAPE.sub(lambda found: MOSES_ESCAPES[found[0]], token) for token in tokens]
