"""At the end of `synmask VERB …`, write down which of our modules Python has loaded."""

import atexit
import json
import os
import sys
from pathlib import Path


def _record() -> None:
    if Path(sys.argv[0]).name == "synmask" and len(sys.argv) > 1:
        found = {
            "words": sys.argv,
            "modules": [name for name in sys.modules if name.split(".")[0] == "synmask"],
        }
        Path(os.environ["SYNMASK_LOADED"], f"{os.getpid()}.json").write_text(json.dumps(found))


atexit.register(_record)
