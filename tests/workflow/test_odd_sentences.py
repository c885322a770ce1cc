"""A validation and a test set with empty lines, single words, punctuation alone and repeated sentences."""

import json
import re

from demo_grammar import write_corpus
from synmask.pipeline.files import read_lines, write_lines

RUN = "results/demo/de-en/grammar/seed1"
ODD = [  # source, its tree, its heads, translation
    ("", "(FLAT)", "", ""),
    ("", "(FLAT)", "", "Nothing ."),
    ("Ja", "(S (ITJ Ja))", "0", "Yes"),
    ("Ja ja", "(S (ITJ Ja) (ITJ ja))", "0 1", ""),
    ("Ja !", "(S (ITJ Ja) ($. !))", "0 1", "Yes !"),
    (".", "(S ($. .))", "0", "."),
    ("? !", "(S ($. ?) ($. !))", "0 1", "? !"),
    ("— …", "(S (_ —) (_ …))", "0 1", "— …"),
    ("", "(FLAT)", "", ""),
]


def test_the_whole_workflow_takes_odd_sentences(project):
    del project.config["corpora"]["demo"]["pairs"]
    folder = project.folder / "demo/de-en"
    write_corpus(folder, {"train": 60, "valid": 4, "test": 4})
    project.config["corpora"]["demo"]["training"] |= {"max_epochs": 1, "average": 1}
    for split in ("valid", "test"):
        columns = [folder / f"{split}.{name}.gz" for name in ("de", "de.trees", "de.heads", "en")]
        ordinary = list(zip(*[list(read_lines(path)) for path in columns], strict=True))
        rows = [*ODD, *ordinary, *ordinary[:2], *ODD[2:4], ODD[0]]
        for path, lines in zip(columns, zip(*rows, strict=True), strict=True):
            write_lines(path, lines)
    project.snakemake()
    empty = [not line for line in read_lines(folder / "test.de.gz")]
    for ending in ("txt", "tok"):
        translated = read_lines(project.folder / f"{RUN}/hypothesis.test.{ending}")
        assert not any(line for line, none in zip(translated, empty, strict=True) if none)
    parse = json.loads((project.folder / f"{RUN}/parse.json").read_text())
    assert parse["unparsed"] == sum(empty)
    assert parse["punctuation"]["by_characters"] == 2
    page = (project.folder / "results/figures/demo-de-en-trees.html").read_text()
    assert '"tree-text" dir="auto">3. Ja<' in page
    assert not re.search(r"tree-text\" dir=\"auto\">\d+\. <", page)
    assert "(no words)" in project.synmask("tree", "--system", "grammar", "--number", "1")
    assert (project.folder / "results/report.html").exists()
