"""Parts that all HTML pages share: styles, scripts, and a policy that allows no others."""

import base64
import hashlib
from importlib.resources import files


def part(name: str) -> str:
    """A style sheet or a script of the folder `page`."""
    return files("synmask.reporting").joinpath("page", name).read_text(encoding="utf-8").strip()


def policy(*scripts: str) -> str:
    """A content security policy: only these scripts run, images are inline, nothing is loaded."""
    sums = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii") for script in scripts)
    allowed = " ".join(f"'sha256-{sum_}'" for sum_ in sums)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
