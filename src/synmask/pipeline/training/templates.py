"""Templates of the target, and fairseq's data for the model that predicts them (ST-NMT)."""

from pathlib import Path

from synmask.pipeline.arguments import Json, Source, Target
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.files import write_json, write_lines
from synmask.pipeline.guidance import TemplateCut
from synmask.pipeline.syntax.templates import cut_templates
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
            pair = [input / f"bpe/{split}.{language}" for language in (source, target)]
            kept = input / f"clean/kept.{source}-{target}" if split == "train" else None
            rows = cut_templates(*pair, trees, kept, settings)
            known = [row for row in rows if row[1]]
            write_lines(folder / f"{split}.{target}", (template for _, template in rows))
            write_lines(folder / f"bpe/{split}.{source}", (sentence for sentence, _ in known))
            write_lines(folder / f"bpe/{split}.{target}", (template for _, template in known))
            counts = {"sentences": len(rows), "without_template": len(rows) - len(known)}
            write_json(folder / f"{split}.{target}.json", counts)
        binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target)
