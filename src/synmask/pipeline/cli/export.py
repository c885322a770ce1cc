"""The verb that exports models, of translation and of language understanding."""

import sys
from pathlib import Path


def export(*, model: Path, output: Path, weights: Path | None = None) -> None:
    """Write a plain model as a folder for Hugging Face's transformers, with its tokenizer.

    For example: `synmask export --model results/…/transformer/seed1/average.pt --output mine` or, of RoBERTa,
    `synmask export --model results/…/roberta/seed1/best.pt --weights results/weights/NAME --output mine`.
    Systems whose attention syntax guides cannot be exported: transformers has no such architecture.

    Args:
        model: A model file of `average`, or best.pt of `finetune`.
        output: The folder: config.json, model.safetensors, the tokenizer's files.
        weights: Of a fine-tuned RoBERTa, the weights that it was trained from.
    """
    if weights is not None:
        from synmask.pipeline.roberta.exported import export_roberta

        return export_roberta(model, weights, output)
    from synmask.pipeline.translation.fsmt import export_translation

    if missing := export_translation(model, output):
        print(f"{output}: without a tokenizer: {missing}", file=sys.stderr)
