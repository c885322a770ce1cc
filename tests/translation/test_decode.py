import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_lines
from synmask.pipeline.search.products import Products
from synmask.pipeline.syntax.parses import read_parses
from synmask.pipeline.syntax.tree import bracket_tree, word_distances, word_heads
from synmask.pipeline.training.binarise import encode_line
from synmask.pipeline.translation import beam
from synmask.pipeline.translation.beam import BeamSearch, search_batches
from synmask.pipeline.translation.decode import decode_files, predict_templates
from synmask.pipeline.translation.inputs import encode_lines
from synmask.pipeline.translation.model_file import load_model
from synmask.pipeline.translation.parse import likely_parents, parse, parse_text
from synmask.pipeline.translation.translate import Translator


def decode(model, source, output):
    decode_files(
        model=model, inputs=[source], outputs=[output], settings=Decoding(beam=3, max_tokens=60), threads=1
    )
    return output.with_suffix(".tok").read_text().splitlines()


@pytest.mark.parametrize("system", ["plain", "grammar"])
def test_hypotheses_keep_their_order_and_do_not_depend_on_batch_mates(corpus, models, tmp_path, system):
    source = corpus / "bpe/test.de"
    together = decode(models / f"{system}.pt", source, tmp_path / "all")
    lines = source.read_text().splitlines()
    assert len(together) == len(lines)
    assert len(set(together)) > 1
    for number, line in enumerate(lines):
        (tmp_path / "one").write_text(line + "\n")
        assert decode(models / f"{system}.pt", tmp_path / "one", tmp_path / "alone") == [together[number]]


def test_decoding_leaves_no_subword_marks_and_counts_its_tokens(corpus, models, tmp_path):
    together = decode(models / "plain.pt", corpus / "bpe/test.de", tmp_path / "all")
    assert not any("@@" in line for line in together)
    assert json.loads((tmp_path / "all.json").read_text())["decoded_tokens"] > len(together)
    assert len((tmp_path / "all.txt").read_text().splitlines()) == len(together)


def test_the_search_has_the_given_precision(corpus, models, tmp_path, monkeypatch):
    precisions = []

    class Watched(BeamSearch):
        def __init__(self, *words):
            super().__init__(*words)
            precisions.append(self.products.rounded)

    monkeypatch.setattr(beam, "BF16_PAIRS", True)
    monkeypatch.setattr("synmask.pipeline.translation.decode.BeamSearch", Watched)
    monkeypatch.setattr("synmask.pipeline.translation.translate.BeamSearch", Watched)
    source, model = corpus / "bpe/test.de", models / "plain.pt"
    settings = Decoding(beam=3, max_tokens=60, precision="bf16")
    decode_files(model=model, inputs=[source], outputs=[tmp_path / "h"], settings=settings)
    predict_templates(model=model, input=source, output=tmp_path / "templates", settings=settings)
    Translator([model], settings)
    assert precisions == 3 * [torch.bfloat16]
    exact, rounded = decode(model, source, tmp_path / "exact"), (tmp_path / "h.tok").read_text().splitlines()
    assert precisions[3:] == [None]
    assert sum(one == other for one, other in zip(exact, rounded, strict=True)) > len(exact) / 2


def test_the_products_with_the_vocabulary_alone_are_exact_in_bf16(corpus, models, monkeypatch):
    made, product = set(), Products.__call__

    def watched(self, x, *layers, exact=False, **kwargs):
        made.add((layers, exact))
        return product(self, x, *layers, exact=exact, **kwargs)

    monkeypatch.setattr(beam, "BF16_PAIRS", True)
    monkeypatch.setattr(Products, "__call__", watched)
    model, task, *_ = load_model(models / "plain.pt")
    search = BeamSearch([model], task.tgt_dict, Decoding(beam=3, precision="bf16"))
    sentences = encode_lines((corpus / "bpe/test.de").read_text().splitlines(), 99, task.src_dict)
    assert list(search_batches(model, search, task.sources(sentences), 60))
    assert [layers for layers, exact in made if exact] == [(model.decoder.output_projection,)]
    assert {layers for layers, exact in made if not exact} > {(model.decoder.layers[0].fc1,)}
    assert ((model.decoder.output_projection,), False) not in made


def test_files_that_are_decoded_together_are_decoded_as_each_alone(corpus, models, tmp_path):
    sources = [corpus / f"bpe/{split}.de" for split in ("valid", "test")]
    settings, outputs = Decoding(beam=3, max_tokens=60), [tmp_path / "valid", tmp_path / "test"]
    decode_files(model=models / "grammar.pt", inputs=sources, outputs=outputs, settings=settings)
    for source, name in zip(sources, ("valid", "test"), strict=True):
        assert decode(models / "grammar.pt", source, tmp_path / "alone") == (
            (tmp_path / f"{name}.tok").read_text().splitlines()
        )
    assert (tmp_path / "valid.tok").read_bytes() != (tmp_path / "test.tok").read_bytes()
    with pytest.raises(UserError, match=r"grammar\.pt: give one output for each input"):
        decode_files(
            model=models / "grammar.pt",
            inputs=sources,
            outputs=[tmp_path / "one"],
            settings=settings,
            threads=1,
        )
    assert not list(tmp_path.glob("one*"))


def test_trees_are_those_of_each_sentence_alone(corpus, models, tmp_path):
    source = corpus / "bpe/valid.de"
    parse(
        model=models / "grammar.pt", subwords=source, output=tmp_path / "trees", distribution=tmp_path / "p"
    )
    rows = [json.loads(line) for line in (tmp_path / "trees").read_text().splitlines()]
    model, task, *_ = load_model(models / "grammar.pt")
    lines = source.read_text().splitlines()
    assert [row["tokens"] for row in rows] == [line.split() for line in lines]
    for line, row in zip(lines, rows, strict=True):
        data = task.sources([encode_line(line, task.src_dict).long()])
        net = data.collater([data[0]])["net_input"]
        with torch.no_grad():
            prepared = model.encoder.induce(net["src_tokens"], net["annotations"])
        n = len(row["tokens"])
        np.testing.assert_allclose(row["distances"], prepared.distance[0, : n - 1], atol=2e-6)
        assert row["eos_distance"] == pytest.approx(float(prepared.distance[0, n - 1]), abs=2e-6)
        np.testing.assert_allclose(row["heights"], prepared.height[0, :n], atol=2e-6)
        distribution = prepared.distribution[0].numpy()
        assert row["heads"] == word_heads(distribution, row["tokens"])
        for token, parents in enumerate(row["parents"]):
            assert {p for p, _ in parents} <= {*range(n + 1)} - {token}
            assert [share for _, share in parents] == pytest.approx(
                [distribution[token, p] for p, _ in parents], abs=0.006
            )


def test_raw_text_is_parsed_as_its_sub_words_are(corpus, models, tmp_path):
    (tmp_path / "bpe").write_text("a bb e@@ f\ng@@ h@@ i\n")
    parse(
        model=models / "grammar.pt",
        subwords=tmp_path / "bpe",
        output=tmp_path / "trees",
        distribution=tmp_path / "p",
    )
    rows = [json.loads(line) for line in (tmp_path / "trees").read_text().splitlines()]
    assert parse_text(models / "grammar.pt", [" a  bb ef", "ghi"]) == rows
    with pytest.raises(UserError, match="line 2: no word in it"):
        parse_text(models / "grammar.pt", ["a", " "])
    with pytest.raises(UserError, match="induces no syntax"):
        parse_text(models / "plain.pt", ["a"])


def test_raw_text_becomes_trees_over_words_line_by_line(models):
    script = "import sys; from pathlib import Path; from synmask.pipeline.translation.parse import parse; parse(model=Path(sys.argv[1]))"
    kwargs = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    process = subprocess.Popen([sys.executable, "-c", script, models / "grammar.pt"], **kwargs)
    for line in ("a bb ef ghi", "", "bb (a)", "d"):
        process.stdin.write(f"{line}\n".encode())
        found = process.stdout.readline().decode().removesuffix("\n")
        if line in ("", "d"):
            assert found == {"": "(FLAT)", "d": "(X d)"}[line]
            continue
        [row] = parse_text(models / "grammar.pt", [line])
        assert found == bracket_tree(*word_distances(row["tokens"], row["distances"]))
        assert found.count("(X") == 2 * len(line.replace("(a)", "( a )").split()) - 1
    process.stdin.write(b"a " * 1200 + b"\n")
    output, printed = process.communicate()
    assert output == b""
    assert b"line 5: longer than 1024 sub-words" in printed


def test_a_file_of_raw_text_is_parsed_as_standard_input_is(models, tmp_path, capsys):
    write_lines(tmp_path / "raw", ["a  bb ef", "", "ghi"])
    parse(model=models / "grammar.pt", input=tmp_path / "raw")
    printed = capsys.readouterr().out
    first, _, last = printed.splitlines()
    assert [re.findall(r"\w+(?=\))", line) for line in (first, last)] == [["a", "bb", "ef"], ["ghi"]]
    parse(model=models / "grammar.pt", input=tmp_path / "raw", output=tmp_path / "trees")
    assert (tmp_path / "trees").read_text() == printed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"distribution": Path("p")}, "--distribution and --sentence need --subwords"),
        ({"input": Path("raw"), "sentence": 1}, "--distribution and --sentence need --subwords"),
        ({"subwords": Path("bpe"), "output": Path("t")}, "give --subwords with --output and --distribution"),
    ],
)
def test_options_of_parse_that_do_not_go_together(given, message):
    with pytest.raises(UserError, match=message):
        parse(model=Path("m.pt"), **given)


def test_the_distribution_of_one_sentence(corpus, models, tmp_path):
    source = corpus / "bpe/valid.de"
    parse(
        model=models / "grammar.pt",
        subwords=source,
        output=tmp_path / "trees",
        distribution=tmp_path / "p",
        sentence=3,
    )
    shown = json.loads((tmp_path / "p").read_text())
    assert shown["sentence"] == 3
    assert shown["tokens"] == [*source.read_text().splitlines()[2].split(), "</s>"]
    np.testing.assert_allclose(np.sum(shown["distribution"], 1), 1, atol=1e-4)
    lines = source.read_text().splitlines()
    write_lines(tmp_path / "short", ["", lines[2]])  # by default not an empty line, if there is another
    parse(
        model=models / "grammar.pt",
        subwords=tmp_path / "short",
        output=tmp_path / "trees",
        distribution=tmp_path / "p",
    )
    assert json.loads((tmp_path / "p").read_text())["sentence"] == 2
    with pytest.raises(UserError, match=r"no sentence 99, only 12; give another \(--sentence"):
        parse(
            model=models / "grammar.pt",
            subwords=source,
            output=tmp_path / "trees",
            distribution=tmp_path / "p",
            sentence=99,
        )


def test_any_white_space_is_between_sub_words(models, tmp_path):
    (tmp_path / "bpe").write_text("a\tbb\u00a0 d\n\u2003\njj\n", encoding="utf-8")
    parse(
        model=models / "grammar.pt",
        subwords=tmp_path / "bpe",
        output=tmp_path / "trees",
        distribution=tmp_path / "p",
        sentence=2,
    )
    assert [parse.tokens for parse in read_parses(tmp_path / "trees")] == [["a", "bb", "d"], [], ["jj"]]
    assert json.loads((tmp_path / "p").read_text())["tokens"] == ["</s>"]


def test_a_file_without_sentences(models, tmp_path):
    (tmp_path / "bpe").touch()
    with pytest.raises(UserError, match="bpe: empty; give sentences in BPE"):
        parse(
            model=models / "grammar.pt",
            subwords=tmp_path / "bpe",
            output=tmp_path / "trees",
            distribution=tmp_path / "p",
        )
    assert [path.name for path in tmp_path.iterdir()] == ["bpe"]
    decode_files(
        model=models / "plain.pt",
        inputs=[tmp_path / "bpe"],
        outputs=[tmp_path / "h"],
        settings=Decoding(),
        threads=1,
    )
    assert (tmp_path / "h.txt").read_text() == (tmp_path / "h.tok").read_text() == ""


def test_a_system_without_a_guide_cannot_parse(corpus, models, tmp_path):
    with pytest.raises(UserError, match=r"plain\.pt: this system induces no syntax"):
        parse(
            model=models / "plain.pt",
            subwords=corpus / "bpe/valid.de",
            output=tmp_path / "t",
            distribution=tmp_path / "p",
        )


def test_likely_parents_are_the_most_probable_others():
    p = np.array([[0.5, 0.3, 0.15, 0.05], [0.25, 0.0, 0.25, 0.5], [0.09, 0.02, 0.8, 0.09], [1, 0, 0, 0]])
    assert likely_parents(p) == [[[1, 0.3], [2, 0.15]], [[3, 0.5], [0, 0.25], [2, 0.25]], []]
