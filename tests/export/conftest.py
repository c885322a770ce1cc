"""Models with drawn parameters for each guide."""

from pathlib import Path

import pytest

import synmask.pipeline.training  # noqa: F401 - makes fairseq importable
from small_models import model_text, typed


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
            model.decoder.layers[-1].final_layer_norm.bias.copy_(1.5 * end)
        save_model(path, model.state_dict(), corpus / "bin", text, settings)
        return path

    return make
