"""Templates of the target, and fairseq's data for the model that predicts them (ST-NMT)."""

from pathlib import Path

from synmask.pipeline.arguments import Json, Source, Target
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.guidance import TemplateCut
from synmask.pipeline.syntax.templates import template_file
from synmask.pipeline.training.binarise import binarise


def write_templates(
    *,
    input: Path,
    source: Source,
    target: Target,
    train_trees: Path,
    valid_trees: Path,
    settings: Json[TemplateCut],
    output: Path,
) -> None:
    """Write templates of the training and validation set, and the data to learn them from.

    Writes OUTPUT/SPLIT.TARGET, the templates, with counts in a .json file beside each; OUTPUT/bpe/, pairs of
    a source sentence and its template, where there is one; OUTPUT/bin/, the same for fairseq
    (`binarise.binarise`).

    Args:
        input: The output of `synmask text` and `synmask subwords`.
        train_trees: A bracketed tree of each target sentence; FLAT or (()) marks an unparsed one.
        valid_trees: Likewise.
        settings: The depth is min(max(ratio · words, least), most): '{"ratio": 0.15, "least": 3, "most": 6}'.
        output: Folder of the templates.

    Raises:
        UserError: trees do not match the sentences (the message names the line), or no sentence has a parse.
    """
    with whole_folder(output, "templates") as folder:
        for split, trees in (("train", train_trees), ("valid", valid_trees)):
            template_file(
                source=input / f"bpe/{split}.{source}",
                target=input / f"bpe/{split}.{target}",
                trees=trees,
                kept=input / f"clean/kept.{source}-{target}" if split == "train" else None,
                settings=settings,
                output=folder / f"{split}.{target}",
                source_out=folder / f"bpe/{split}.{source}",
                templates_out=folder / f"bpe/{split}.{target}",
            )
        binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target)
