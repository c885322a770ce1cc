"""A Python that has torch and transformers alone, and models with drawn parameters for each guide."""

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import synmask.pipeline.training  # noqa: F401 - makes fairseq importable
from small_models import model_text, typed


def _needed(name, known):
    """The installed distributions that `name` needs without extras, itself included: name → distribution."""
    name = re.sub("[-_.]+", "-", name).lower()
    if name not in known:
        try:
            known[name] = distribution(name)
        except ModuleNotFoundError:  # of another machine
            return known
        for line in known[name].requires or []:
            if "extra ==" not in line:
                _needed(re.match(r"[\w.-]+", line).group(), known)
    return known


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """Run code in a Python that sees torch, transformers and the packages that they need, and nothing else."""
    folder, cache = tmp_path_factory.mktemp("packages"), tmp_path_factory.mktemp("cache")
    for one in _needed("torch", _needed("transformers", {})).values():
        for top in {file.parts[0] for file in one.files if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(one.locate_file(top)))

    def run(code):
        code = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{code}"
        offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(cache), "PATH": "/usr/bin", "HOME": str(cache)}
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], env=offline, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "No module named 'synmask'" in run("try: import synmask\nexcept ImportError as e: print(e)")
    return run


@pytest.fixture(scope="session")
def drawn(corpus, all_settings):
    """Write a model file of a guide whose parameters, <pad>'s too, are drawn so that translations differ.

    The decoder leans towards `</s>`: without that, hardly any translation would end.
    """
    import torch

    from synmask.pipeline.config.guides import GUIDES
    from synmask.pipeline.translation.average import save_model
    from synmask.pipeline.translation.task import GuidedTranslation, task_config, transformer_config

    words = [GuidedTranslation.load_dictionary(str(corpus / f"bin/dict.{side}.txt")) for side in ("de", "en")]
    text = model_text("#version: 0.2\nb b</w>\nc c</w>\nj j</w>\n")

    def make(path, guide, seed=0, left_pad_source=False, **options):
        whole = GUIDES[guide].model_validate(options).model_dump(mode="json")
        system = all_settings["plain"]["system"] | {"guide": guide, "options": whole}
        system["left_pad_source"] = left_pad_source
        settings = typed(all_settings["plain"] | {"system": system})
        torch.manual_seed(seed)
        task = GuidedTranslation(task_config(Path(), "de", "en"), *words, settings)
        model = task.build_model(transformer_config(settings))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" not in name:
                    torch.nn.init.normal_(parameter, std=0.4)
            end = model.decoder.embed_tokens.weight[task.tgt_dict.eos()]
            model.decoder.layers[-1].final_layer_norm.bias.copy_(end)
        save_model(path, model.state_dict(), corpus / "bin", text, settings)
        return path

    return make
