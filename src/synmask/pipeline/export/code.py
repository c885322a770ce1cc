"""The code in a guided model's folder: the model for transformers, and the files of the method that it needs.

transformers copies the files that a file imports relatively, from one folder only
(`transformers.dynamic_module_utils`), so `synmask.guides.grammar` becomes `synmask_guides_grammar.py`.
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from synmask.options import guide_names, options_of
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_all
from synmask.pipeline.guidance import Guidance

TOKENIZER = Path(__file__).with_name("tokenization_moses.py")
OF_PIECES = Path(__file__).with_name("tokenization_pieces.py")
IMPORT = re.compile(r"^from (synmask[\w.]*) import", re.M)
# In the files for transformers; a copy imports the model's guide instead
OWN = re.compile(r"^from synmask\.(guides|options)\.grammar import Grammar", re.M)


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write the named files into a folder, all of them or none.

    An export of the same kind is written again. That of another kind is refused: its tokenizer or code, left
    beside the new model, would be loaded with it. Hidden files, such as those of git, do not count.

    Raises:
        UserError: the folder holds files that are not written, or none that shows it to be an export.
    """
    if folder.is_file():
        raise UserError(f"{folder}: a file; give the name of a folder")
    held = [path.name for path in folder.glob("[!.]*")]
    export = files.keys() if "config.json" in held else ()
    if other := sorted(set(held).difference(export)):
        raise UserError(f"{folder}: holds other files, such as {other[0]}; give a new folder")
    write_all({folder / name: content for name, content in files.items()})


def method_code(
    path: Path, system: Guidance, model_type: str, auto: str, model: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings and the code by which transformers loads the model in `path` as `auto`: its own `model`.

    Returns:
        keys for config.json; modeling_KIND.py and the files of the method behind it, name → text. Nothing of
        both for a plain model.

    Raises:
        UserError: the model reads what a parser or another model gives.
    """
    if system.guide == "none":
        return {}, {}
    if system.guide not in guide_names():
        reads = f"templates of a second model ({system.guide})"
        raise UserError(f"{path}: reads {reads}, so it cannot be exported alone")
    if (options := options_of(system.guide)).reads and not options.parses_itself:
        needed = " and ".join(sorted(options.reads))
        raise UserError(f"{path}: {system.guide} reads {needed} of a parser, which would not go along")
    names = {"AutoConfig": f"modeling_{model_type}.GuidedConfig", auto: f"modeling_{model_type}.{model}"}
    config = {"architectures": [model], "model_type": f"synmask-{model_type}", "auto_map": names}
    main = Path(__file__).with_name(f"modeling_{model_type}.py").read_text("utf-8")
    main = OWN.sub(rf"from synmask.\1.{system.guide} import {system.guide.capitalize()}", main)
    code = with_imports(f"modeling_{model_type}", main)
    return config | {"guide": system.guide, "guide_options": system.options}, code


def with_imports(name: str, text: str) -> dict[str, str]:
    """The file NAME.py and all files of synmask that it imports, name → text, for one folder."""
    texts, waiting = {name: text}, [name]
    while waiting:
        for module in IMPORT.findall(texts[waiting.pop()]):
            if module not in texts:
                texts[module] = Path(find_spec(module).origin).read_text("utf-8")
                waiting.append(module)
    return {
        f"{_flat(name)}.py": IMPORT.sub(lambda match: f"from .{_flat(match[1])} import", text)
        for name, text in texts.items()
    }


def _flat(module: str) -> str:
    return module.replace(".", "_")
