"""The verb that exports models, of translation and of language understanding."""

import sys
from pathlib import Path
from typing import Literal

from synmask.pipeline.errors import UserError


def export(
    model: Path,
    *,
    output: Path,
    weights: Path | None = None,
    format: Literal["transformers", "ctranslate2"] = "transformers",
) -> None:
    """Write a model as a folder that others load without synmask.

    For example: `synmask export results/…/grammar/seed1/average.pt --output mine` or, of RoBERTa,
    `synmask export results/…/roberta/seed1/best.pt --weights results/weights/NAME --output mine`.
    transformers then loads it, with its tokenizer; a guided model brings the code of its guide along. Systems
    that read parses or templates to translate or classify are refused.

    Args:
        model: A model file of `average`, or best.pt of `finetune`.
        output: A new folder, or that of an earlier export of the same kind.
        weights: Of a fine-tuned RoBERTa, the weights that it was trained from.
        format: For Hugging Face's transformers, or for CTranslate2 (a plain Transformer alone).
    """
    if weights is not None:
        if format != "transformers":
            raise UserError(f"--format {format}: for models of translation; leave it out, or --weights")
        from synmask.pipeline.roberta.export import export_roberta

        return export_roberta(model, weights, output)
    if format == "ctranslate2":
        from synmask.pipeline.translation.ct2 import export_ctranslate2

        return export_ctranslate2(model, output)
    from synmask.pipeline.translation.fsmt import export_translation

    if missing := export_translation(model, output):
        print(f"{output}: without a tokenizer: {missing}", file=sys.stderr)
