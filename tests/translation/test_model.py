"""A trained model in Python."""

import ast
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from synmask.pipeline import load
from synmask.pipeline.cli import main
from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.syntax.treebank import parse_trees
from synmask.pipeline.translation.decode import decode_files
from synmask.pipeline.translation.model_file import load_model
from synmask.pipeline.translation.parse import parse, parse_text
from synmask.pipeline.translation.translate import Translator

DOCS = Path(__file__).parents[2] / "docs/models.md"
LINES = ["a bb d", "", "ghi a cc"]


def test_it_translates_as_the_command_does(models, tmp_path, capsys):
    write_lines(tmp_path / "in", LINES)
    main(["translate", str(models / "grammar.pt"), "--input", str(tmp_path / "in")])
    assert load(models / "grammar.pt").translate(LINES) == capsys.readouterr().out.split("\n")[:-1]
    best = load(models / "grammar.pt").translate(LINES, nbest=3)
    assert best == [*Translator([models / "grammar.pt"])(LINES, nbest=3, scored=True)]
    assert [len(found) for found in best] == [3, 1, 3]
    with pytest.raises(UserError, match="nbest 6: the beam holds 5"):
        load(models / "grammar.pt").translate(LINES, nbest=6)


def test_it_parses_as_the_command_does(models):
    first, second = load(models / "grammar.pt").parse(["ghi a cc", "a"])
    rows = parse_text(models / "grammar.pt", ["ghi a cc", "a"])
    assert first.tokens == rows[0]["tokens"] == ["g@@", "h@@", "i", "a", "cc"]
    assert first.distance.tolist() == rows[0]["distances"]
    assert first.height.tolist() == rows[0]["heights"]
    assert first.distribution.shape == (6, 6)
    np.testing.assert_allclose(first.distribution.sum(1), 1, atol=1e-5)
    assert first.tree.count("(X ghi)") == 1
    assert (second.tokens, second.distance.tolist()) == (["a"], [])
    with pytest.raises(UserError, match=r"plain\.pt: this system induces no syntax"):
        load(models / "plain.pt").parse(["a"])


def test_one_text_is_not_taken_for_lines_of_a_letter(models):
    model = load(models / "grammar.pt")
    scores = (lambda text: model.score([text], text), lambda text: model.score(text, [text]))
    for call in (model.translate, model.parse, *scores):
        with pytest.raises(TypeError, match=r"give a list of texts, such as \['a bb'\], not one text"):
            call("a bb")


MIXING = {
    "structformer": ("structformer", {"conv_layers": 1}),
    "published": ("grammar", {"conv_layers": 1, "calibration": "as-published", "left_pad_source": True}),
}


@pytest.mark.parametrize("name", MIXING)
def test_no_sentence_is_affected_by_others_where_a_batch_would_mix_them(drawn, tmp_path, name):
    """From Python, and in the workflow's translations, forced decoding and trees."""
    guide, options = MIXING[name]
    path = drawn(tmp_path / "model.pt", guide, **options)
    sources = ["a bb d", "cc", "jj e@@ f g@@ h@@ i a", "d bb a", "cc jj a a bb d"]
    references = ["d bb a", "jj", "a", "bb", "d d cc a a jj"]
    plain = [line.replace("@@ ", "") for line in sources]
    model = load(path)
    assert model.score(plain, references) == [
        model.score([s], [r])[0] for s, r in zip(plain, references, strict=True)
    ]
    together, alone = model.parse(plain), [model.parse([line])[0] for line in plain]
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.distribution, other.distribution)
        assert np.array_equal(one.distance, other.distance)

    def made(lines, expected):
        write_lines(tmp_path / "source", lines)
        write_lines(tmp_path / "reference", expected)
        decode_files(
            model=path,
            inputs=(tmp_path / "source",),
            outputs=(tmp_path / "out",),
            references=(tmp_path / "reference",),
            settings=Decoding(beam=2),
        )
        parse(
            model=path, subwords=tmp_path / "source", output=tmp_path / "trees", distribution=tmp_path / "p"
        )
        return [[*read_lines(tmp_path / file)] for file in ("out.tok", "out.forced.csv", "trees")]

    words, forced, trees = made(sources, references)
    for number, pair in enumerate(zip(sources, references, strict=True)):
        assert made(*([text] for text in pair)) == [
            [words[number]],
            [forced[0], forced[number + 1]],
            [trees[number]],
        ]


def test_it_scores_as_decode_does(models, tmp_path):
    for name, lines in (("source", ["a bb d", "g@@ h@@ i a"]), ("reference", ["d bb", "a g@@ h@@ i"])):
        write_lines(tmp_path / name, lines)
    decode_files(
        model=models / "plain.pt",
        inputs=(tmp_path / "source",),
        outputs=(tmp_path / "out",),
        references=(tmp_path / "reference",),
        settings=Decoding(),
    )
    expected = [float(line.split(",")[0]) for line in [*read_lines(tmp_path / "out.forced.csv")][1:]]
    assert load(models / "plain.pt").score(["a bb d", "ghi a"], ["d bb", "a ghi"]) == expected
    with pytest.raises(UserError, match="1 sources, 2 references"):
        load(models / "plain.pt").score(["a"], ["a", "a"])


def test_lisa_needs_no_parser(drawn, tmp_path):
    path = drawn(tmp_path / "average.pt", "lisa")
    assert load_model(path).task.needs == frozenset()
    assert len(load(path).translate(["a bb d"])) == 1


def test_the_example_of_the_docs(models, tmp_path, monkeypatch, capsys):
    """Its words are the demo's; all that follows from a model's form is compared."""
    shutil.copy(models / "grammar.pt", tmp_path / "average.pt")
    monkeypatch.chdir(tmp_path)
    text = DOCS.read_text("utf-8").partition("## From Python")[2]
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], {})
    shown = re.search(r"```text\n(.*?)```", text, re.S)[1].splitlines()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(shown) == 5
    for ours, theirs in ((printed, shown), (shown, shown)):
        translations, scores = ast.literal_eval(ours[0]), ast.literal_eval(ours[4])
        (tree,) = parse_trees([ours[2]], "the page")
        assert [type(one) for one in translations] == [str, str]
        assert ours[1] == theirs[1]
        assert tree.leaves() == ["Der", "Arzt", "sieht", "die", "Frau", "."]
        assert all(score < 0 for score in scores)
        tokens, shapes = re.fullmatch(r"(\[.*\]) (\(.*)", ours[3]).groups()
        n = len(ast.literal_eval(tokens))
        assert shapes == f"({n - 1},) ({n},) ({n + 1}, {n + 1})"


def test_the_shipped_model_from_any_folder(models, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()  # a folder is no model file of this name
    text, translation = "Der Arzt sieht die Frau.", "The doctor sees the woman."
    write_lines(tmp_path / "in", [text])
    assert load("demo").translate([text]) == [translation]
    main(["translate", "--model", "demo", "--input", "in"])
    assert capsys.readouterr().out == f"{translation}\n"
    main(["parse", "--model", "demo", "--input", "in"])
    assert capsys.readouterr().out == f"{load('demo').parse([text])[0].tree}\n"
    main(["tree", "--model", "demo", text])
    drawn = capsys.readouterr().out
    assert all(word in drawn for word in ("demo", "Der", "Arzt", "sieht", "die", "Frau"))
    (tmp_path / "demo").rmdir()
    shutil.copy(models / "grammar.pt", tmp_path / "demo")
    assert load("demo").translate(LINES) == load(models / "grammar.pt").translate(LINES)


def test_the_script_that_draws_and_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = DOCS.read_text("utf-8").partition("## From Python")[2]
    exec(re.findall(r"```python\n(.*?)```", text, re.S)[1], {})
    tree, f1 = capsys.readouterr().out.splitlines()
    assert [tree.leaves() for tree in parse_trees([tree], "printed")] == [
        ["Der", "Arzt", "sieht", "die", "Frau", "."]
    ]
    assert 50 <= float(f1) <= 100
    assert (tmp_path / "distribution.png").read_bytes().startswith(b"\x89PNG")


def test_its_beam_and_length_penalty_are_those_of_the_call(models):
    model, kwargs = load(models / "grammar.pt"), {"nbest": 2}
    wide = model.translate(LINES, **kwargs)
    assert model.translate(LINES, beam=2, length_penalty=0.0, **kwargs) == load(
        models / "grammar.pt", beam=2, length_penalty=0.0
    ).translate(LINES, **kwargs)
    assert model.translate(LINES, length_penalty=0.0, **kwargs) != wide
    assert model.translate(LINES, batch=1, **kwargs) == wide  # the settings of `load` again
    for arguments, message in (
        ({"beam": 0}, "beam 0: Input should be greater than 0"),
        ({"length_penalty": float("nan")}, "length_penalty nan: "),
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"nbest": 3, "beam": 2}, "nbest 3: the beam holds 2"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            model.translate(LINES, **arguments)
    with pytest.raises(TypeError, match=r"^line 2 must be a text, not NoneType$"):
        model.translate(["a", None])
