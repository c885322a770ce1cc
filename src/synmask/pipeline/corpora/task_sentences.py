"""The sentences of a language understanding task, for a parser."""

from pathlib import Path

from synmask.pipeline.arguments import CountOption, OneOrMore, TaskName
from synmask.pipeline.corpora.tasks import read_task
from synmask.pipeline.files import line_key, write_all
from synmask.pipeline.tasks import TASK_LANGUAGE
from synmask.pipeline.text.tokenise import tokenise


def write_sentences(
    *,
    task: TaskName,
    inputs: OneOrMore[Path],
    output: Path,
    tokens: Path,
    number: CountOption = 1,
    files: CountOption = 1,
) -> dict[str, int]:
    """Write each distinct sentence of a task once, for a parser, in the order of first occurrences.

    Args:
        inputs: Outputs of `glue`, one per part.
        output: One sentence per line.
        tokens: Output: their Moses tokens.
        number: Which of the files to write, from 1.
        files: Into how many files of similar length the sentences are split.

    Returns:
        The number of different sentences in this file.

    Raises:
        UserError: as for `read_task`.
    """
    examples = (read_task(task, part, test=True).texts for part in inputs)
    texts = (text for part in examples for example in part for text in example)
    sentences = list(dict.fromkeys(map(line_key, texts)))
    size = -(-len(sentences) // files)
    chosen = sentences[(number - 1) * size : number * size]
    outputs = {output: chosen, tokens: tokenise(chosen, TASK_LANGUAGE)}
    write_all({path: "".join(f"{line}\n" for line in lines) for path, lines in outputs.items()})
    return {"sentences": len(chosen)}
