"""Figures: their data, their bytes, and that nothing in them overlaps."""

import csv
import itertools
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.font_manager import fontManager, get_font
from matplotlib.text import Text

from synmask.pipeline.errors import UserError
from synmask.pipeline.reporting import figures

TOKENS = ["die", "Fracht@@", "raum@@", "ung", "in", "den", "Häfen", ",", "sagte", "sie", "."]
LABELS = {"transformer": "Transformer", "grammar": "Grammar"}


def swept(folder):
    """scores.json of three systems of two seeds that differ in bpe_dim."""
    paths = []
    for size in (2, 16, 256):
        for seed in (1, 2):
            named = dict.fromkeys(["sacrebleu", "bleu_tokenised", "chrf"], 30.0 + seed + size / 64)
            valid = dict.fromkeys(named, 40.0 + seed - abs(size - 16) / 64)
            run = {"corpus": "demo", "direction": "de-en", "system": f"dim{size}", "seed": seed}
            run |= {"scores": {"valid": valid, "test": named}, "signatures": dict.fromkeys(named, "s")}
            run["settings"] = {"system": {"options": {"bpe_dim": size, "bpe": "add"}}}
            paths.append(folder / f"dim{size}-{seed}.json")
            paths[-1].write_text(json.dumps(run))
    return paths


def draw_curves(histories, out, labels=LABELS):
    figures.curves_figure(inputs=histories, labels=[*labels.items()], output=out)


def draw_map(tokens, matrix, out, title="P_D"):
    path = out.with_name("p_d.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"sentence": 1, "tokens": tokens, "distribution": matrix.tolist()}))
    figures.distribution_figure(distribution=path, title=title, output=out)


def draw_sweep(folder, out, setting="system.options.bpe_dim"):
    figures.sweep_figure(inputs=swept(folder), setting=setting, output=out)


@pytest.fixture
def history(tmp_path):
    """Writes a run's history.csv and train.json, and returns the path of the first."""

    def write(text, system="transformer", seed=1):
        path = tmp_path / f"{system}/{seed}/history.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        run = {"corpus": "demo", "direction": "de-en", "system": system, "seed": seed, "settings": {}}
        path.with_name("train.json").write_text(json.dumps(run))
        return path

    return write


@pytest.fixture
def histories(history):
    header = "epoch,updates,train_loss,valid_loss,valid_ppl,tokens_per_second,seconds"
    return [
        history("\n".join([header, *(
            f"{epoch},{10 * epoch},{9 / epoch + seed},{8 / epoch + seed},4,9,1" for epoch in (1, 2, 3)
        )]) + "\n", system, seed)
        for system in ("transformer", "grammar") for seed in (1, 2)
    ]  # fmt: skip


@pytest.fixture
def draw(histories, tmp_path):
    """name → a function that writes this figure at a stem."""
    matrix = np.full((len(TOKENS), len(TOKENS)), 1 / len(TOKENS))
    long = [*TOKENS, *TOKENS[:-1], "verschwendungs@@"]
    assert len(long) == 22
    return {
        "curves": lambda out: draw_curves(histories, out),
        "sweep": lambda out: draw_sweep(tmp_path, out),
        "distribution": lambda out: draw_map(TOKENS, matrix, out, "P_D"),
        "large": lambda out: draw_map(long, np.full((22, 22), 1 / 22), out, "P_D"),
        "small": lambda out: draw_map(["a", "b"], np.eye(2), out, "A heading wider than the map"),
    }


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, as matplotlib objects."""
    kept = []
    settle = figures.settle

    def keep(figure):
        kept.append(figure)
        settle(figure)

    monkeypatch.setattr(figures, "settle", keep)
    return kept


def table(path):
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


NAMES = ["curves", "sweep", "distribution"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_data_gives_the_same_bytes(draw, tmp_path, name):
    for folder in ("one", "two"):
        draw[name](tmp_path / folder / "figure.v1")
    for extension in ("svg", "pdf", "csv"):
        first = (tmp_path / "one" / f"figure.v1.{extension}").read_bytes()
        assert first == (tmp_path / "two" / f"figure.v1.{extension}").read_bytes()
        assert len(first) > 100
    assert ET.parse(tmp_path / "one" / "figure.v1.svg").getroot().tag.endswith("svg")
    assert b"<dc:date>" not in (tmp_path / "one" / "figure.v1.svg").read_bytes()
    assert (tmp_path / "one" / "figure.v1.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", NAMES)
def test_panels_lie_where_no_rounding_error_shows(draw, drawn, tmp_path, name):
    draw[name](tmp_path / "figure")
    for axes in drawn[0].axes:
        bounds = axes.get_position(original=True)
        assert [bounds.x0, bounds.y0] == np.round([bounds.x0, bounds.y0], 6).tolist()


@pytest.mark.parametrize("name", [*NAMES, "small", "large"])
def test_no_text_overlaps_another_or_leaves_the_figure(draw, drawn, tmp_path, monkeypatch, name):
    draw[name](tmp_path / "figure")
    (figure,) = drawn
    boxes = {}
    plain_draw = Text.draw

    def record(text, renderer):
        if text.get_text().strip() and text.get_visible():
            boxes[text] = text.get_window_extent(renderer)
        plain_draw(text, renderer)

    monkeypatch.setattr(Text, "draw", record)
    FigureCanvasAgg(figure).draw()
    assert len(boxes) > 5
    for text, box in boxes.items():
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1, text
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1, text
    for (text, box), (other_text, other) in itertools.combinations(boxes.items(), 2):
        assert not box.overlaps(other), (text, other_text)


def test_curves_are_means_over_seeds_with_their_range(draw, drawn, tmp_path):
    draw["curves"](tmp_path / "curves")
    training, validation = drawn[0].axes
    lines = [line for line in training.lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in lines] == ["Transformer", "Grammar"]
    assert lines[0].get_ydata() == pytest.approx([10.5, 6.0, 4.5])
    assert validation.lines[0].get_ydata() == pytest.approx([9.5, 5.5, 8 / 3 + 1.5])
    band = validation.collections[0].get_paths()[0].vertices
    assert {band[:, 1].min(), band[:, 1].max()} == {8 / 3 + 1, 10.0}
    rows = table(tmp_path / "curves.csv")
    assert len(rows) == 12
    assert list(rows[3].values())[:4] == ["transformer", "2", "1", "10"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "not a table"), ("epoch,train_loss\n1,2\n", "no column valid_loss"), (None, "no such file; train again")],
)  # fmt: skip
def test_histories_that_cannot_be_read_are_named(history, tmp_path, text, message):
    path = history(text or "")
    if text is None:
        path.unlink()
    with pytest.raises(UserError, match=rf"history\.csv: {message}"):
        draw_curves([path], tmp_path / "x")


def test_a_history_without_the_record_of_its_run_or_a_label_is_named(histories, tmp_path):
    with pytest.raises(UserError, match=r"^--labels: no label for grammar; add one"):
        draw_curves(histories, tmp_path / "x", {"transformer": "T"})
    histories[0].with_name("train.json").unlink()
    with pytest.raises(UserError, match=r"transformer/1/train\.json: no such file"):
        draw_curves(histories, tmp_path / "x")


def test_heat_map_has_a_row_a_token_and_a_column_a_parent(drawn, tmp_path):
    matrix = np.array([[0.0, 0.7, 0.3], [0.04, 0.0, 0.96], [0.2, 0.8, 0.0]])
    draw_map(["a", "b@@", "c"], matrix, tmp_path / "map", "P_D")
    axes = drawn[0].axes[0]
    assert axes.images[0].get_array().tolist() == matrix.tolist()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b@@", "c"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Parent", "Token")
    assert axes.images[0].get_clim() == (0, 1)
    draw_map(["a", "b"], np.array([[0, 0.11], [0.02, 0]]), tmp_path / "pale", "P_D")
    assert drawn[1].axes[0].images[0].get_clim() == (0, 0.2)  # the scale fits the values
    shown = {text.get_unitless_position(): text.get_text() for text in axes.texts}
    assert shown == {(1, 0): ".7", (2, 0): ".3", (2, 1): "1.0", (0, 2): ".2", (1, 2): ".8"}
    row = table(tmp_path / "map.csv")[5]
    assert list(row.values()) == ["2", "b@@", "3", "c", "0.96"]


def test_letters_from_right_to_left_stand_so_and_are_joined(tmp_path):
    draw_map(["אב", "سلام", "b"], np.full((3, 3), 0.05), tmp_path / "map")
    svg = (tmp_path / "map.svg").read_text()
    font = get_font(fontManager.findfont("DejaVu Sans"))
    glyphs = {
        text: re.findall(
            r'href="#DejaVuSans-(\w+)"', svg.partition(f"<!-- {text} -->")[2].partition("<!--")[0]
        )
        for text in ("אב", "سلام")
    }
    assert [int(glyph, 16) for glyph in glyphs["אב"]] == [font.get_char_index(ord(letter)) for letter in "בא"]
    assert len(glyphs["سلام"]) == 3  # lam and alef are one


def test_labels_are_shown_letter_by_letter(histories, drawn, tmp_path):
    """Two systems stay two even where they are called alike, and a label with dollar signs is no formula."""
    draw_curves(histories, tmp_path / "curves", {"transformer": "$x$ $", "grammar": "$x$ $"})
    lines = [line for line in drawn[0].axes[0].lines if not line.get_label().startswith("_")]
    assert [line.get_label() for line in lines] == ["$x$ $", "$x$ $"]


def test_a_sweep_is_a_line_of_means_on_an_axis_that_fits(draw, drawn, tmp_path):
    draw["sweep"](tmp_path / "sweep")
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "log"
    assert axes.lines[0].get_xdata().tolist() == [2, 16, 256]
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["test"].get_ydata() == pytest.approx([31.5 + size / 64 for size in (2, 16, 256)])
    valid = [41.5 - abs(size - 16) / 64 for size in (2, 16, 256)]
    assert lines["validation"].get_ydata() == pytest.approx(valid)
    assert lines["chosen"].get_xdata() == [16, 16]  # 256 on the test set
    with pytest.raises(UserError, match=r"settings\.system\.options\.bpe is no number, but 'add'"):
        draw_sweep(tmp_path, tmp_path / "sweep", "system.options.bpe")


def test_a_run_given_twice_is_not_drawn(histories, tmp_path):
    """It would count twice in means, and might choose another value."""
    paths = swept(tmp_path)
    with pytest.raises(UserError, match=r"^dim2 on demo de-en, seed 1: given twice"):
        figures.sweep_figure(
            inputs=[*paths, paths[0]], setting="system.options.bpe_dim", output=tmp_path / "f"
        )
    paths[1].write_text(paths[1].read_text().replace('"add"', '"none"'))
    with pytest.raises(UserError, match=r"^settings differ between dim2 .*seed 1.* and dim2 .*seed 2"):
        figures.sweep_figure(inputs=paths, setting="system.options.bpe_dim", output=tmp_path / "f")
    with pytest.raises(UserError, match=r"^transformer on demo de-en, seed 1: given twice"):
        draw_curves([*histories, histories[0]], tmp_path / "f")
    assert not [*tmp_path.glob("f.*")]


def test_a_figure_has_all_its_files_or_none(tmp_path):
    figure, _ = figures.panels(1)
    with pytest.raises(AttributeError):
        figures.save(figure, tmp_path / "f", None)  # no data
    assert not [*tmp_path.iterdir()]
