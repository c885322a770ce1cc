"""Every row of GLUE's tasks becomes the ids and targets that fairseq's recipe for RoBERTa makes of it.

The recipe is examples/roberta/README.glue.md of fairseq: cut the columns out, strip each line, encode it by its
GPT-2 BPE and dict.txt, write `<s> a </s> </s> b </s>`, and divide STS-B's scores by 5. Here: on rows with blanks
in all places. With SYNMASK_TEST_GLUE=FOLDER, which holds TASK/PART.tsv.gz of GLUE and gpt2_bpe/, on these, too.
"""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import get_encoder

from synmask.pipeline.corpora.glue import LAYOUTS, write_part
from synmask.pipeline.roberta.encode import encode_task
from synmask.pipeline.roberta.examples import read_encoded
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.text.gpt2 import learn_byte_bpe

COLUMNS = {  # of the text or texts, and of the label, from 0: those of the recipe's script
    "cola": ((3,), 1),
    "sst-2": ((0,), 1),
    "rte": ((1, 2), 3),
    "mrpc": ((3, 4), 0),
    "sts-b": ((7, 8), 9),
}
HEADERS = {
    "sst-2": "sentence|label",
    "rte": "index|sentence1|sentence2|label",
    "mrpc": "\ufeffQuality|#1 ID|#2 ID|#1 String|#2 String",
    "sts-b": "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2|score",
}
SENTENCES = [
    "it 's fine . ",
    ' He said "yes\u201d',
    "a  b \u3000",
    "\xa0don\u2019t stop\x0c",
    "a",
    "so what ? ",
]


def recipe(task, lines, encoder, dictionary):
    """The rows of ids and the targets that the recipe makes of a task's lines without their header."""
    texts, label = COLUMNS[task]
    for line in lines:
        fields, ids = line.split("\t"), [dictionary.bos()]
        for number, column in enumerate(texts):
            pieces = " ".join(map(str, encoder.encode(fields[column].strip())))
            ids += [dictionary.eos()] * bool(number)
            ids += dictionary.encode_line(pieces, add_if_not_exist=False, append_eos=True).tolist()
        labels = TASKS[task].labels
        yield ids, labels.index(fields[label]) if labels else float(f"{float(fields[label]) / 5:.6g}")


def differences(task, part, folder, weights, temporary):
    """The numbers of rows, and of those that differ in ids or target."""
    with gzip.open(folder / f"{part}.tsv.gz", "rt", encoding="utf-8", newline="\n") as handle:
        lines = handle.read().removesuffix("\n").split("\n")[task in HEADERS :]
    encoder = get_encoder(str(weights / "encoder.json"), str(weights / "vocab.bpe"))
    rows = [*recipe(task, lines, encoder, Dictionary.load(str(weights / "dict.txt")))]
    write_part(task=task, part=part, sources=[folder], output=temporary / f"{part}.tsv", rows=len(rows))
    where = {"input": temporary / f"{part}.tsv", "output": temporary / f"{part}.npz"}
    encode_task(task=task, weights=weights, max_tokens=512, **where)
    encoded = read_encoded(where["output"])
    assert len(encoded) == len(rows)
    return len(rows), sum(
        encoded[index].tolist() != ids or encoded.targets[index] != np.float32(target)
        for index, (ids, target) in enumerate(rows)
    )


def made(task, folder):
    """A folder with a task's development set; weights' vocabulary."""
    learn_byte_bpe(SENTENCES * 2, 30, folder / "weights")
    texts, label = COLUMNS[task]
    lines = [HEADERS[task].replace("|", "\t")] if task in HEADERS else []
    for number, sentence in enumerate(SENTENCES):
        labels = TASKS[task].labels or ("3.8", "0.333", "5", "1.0833333333333", "4.75")
        fields = ["x"] * (len(HEADERS[task].split("|")) if task in HEADERS else 4)
        fields[label] = labels[number % len(labels)]
        for column in texts:
            fields[column] = sentence
        lines.append("\t".join(fields))
    with gzip.open(folder / "dev.tsv.gz", "wt", encoding="utf-8", newline="\n") as handle:
        handle.write("\n".join(lines))
    return folder, folder / "weights"


REAL = os.environ.get("SYNMASK_TEST_GLUE")


@pytest.mark.parametrize(
    ("source", "part"), [("made", "dev"), *((REAL, part) for part in ("train", "dev") if REAL)]
)
@pytest.mark.parametrize("task", COLUMNS)
def test_no_row_differs_from_the_recipes(tmp_path, task, source, part):
    given = (
        made(task, tmp_path)
        if source == "made"
        else (Path(source) / LAYOUTS[task].folder, Path(source) / "gpt2_bpe")
    )
    rows, differing = differences(task, part, *given, tmp_path)
    print(f"{task} {part}: {rows:,} rows, {differing} differ")
    assert differing == 0
