"""Tables: the numbers by hand, published numbers beside them, what is missing or does not fit."""

import copy
import csv
import errno
import json
import os
import shutil

import pytest

from synmask.pipeline import disk
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import COUNTS, TOKENISED
from synmask.pipeline.evaluation.sentences import PROBABILITY
from synmask.pipeline.files import write_lines
from synmask.pipeline.reporting.cells import ScoreOptions
from synmask.pipeline.reporting.tables import write_table

SIGNATURES = {"sacrebleu": "case:mixed|tok:13a", "bleu_tokenised": "case:mixed|tok:none", "chrf": "nc:6"}
PUBLISHED = {
    "papers": {"kai2024": "Kai and others 2024, A title", "lee2020": "Lee 2020, Another"},
    "systems": {
        name: {"label": name, "paper": "lee2020" if name == "peer" else "kai2024"}
        for name in ("transformer", "grammar", "peer")
    },
    "results": [
        {
            "paper": "kai2024",
            "corpus": "demo",
            "metric": "bleu_tokenised",
            "columns": ["de-en", "en-de"],
            "measured": {"transformer": ["34.71 ± 0.12", "28.91"], "grammar": ["35.80", None]},
            "quoted": {"peer": ["36.00", None]},
            "note": "A note.",
        }
    ],
}


def spec_of(systems, seeds=(1, 2, 3), directions=("de-en",), metrics=("bleu_tokenised",), **kwargs):
    """A spec in which every system is run with every seed, but for `peer`."""
    runs = {system: list(seeds) for system in systems if system != "peer"}
    return {
        "title": "A title",
        "metrics": list(metrics),
        "sweep": False,
        "labels": [[system, system.capitalize()] for system in systems],
        "columns": [
            {"corpus": "demo", "column": d, "group": "", "runs": copy.deepcopy(runs)} for d in directions
        ],
        "notes": [],
    } | kwargs


@pytest.fixture
def run(tmp_path):
    """Writes a scores.json and returns its path; with `right`, beside it the counts of `sentences` sentences.

    Each sentence has ten words, of which `right`, or one more, are those of the reference.
    """

    def write(
        system, seed, bleu, *, direction="de-en", signatures=SIGNATURES, corpus="demo",
        right=None, sentences=40, old=False, **kwargs
    ):  # fmt: skip
        test = {"sacrebleu": bleu, "bleu_tokenised": bleu, "chrf": 50.0}
        scores = {"test": test, "valid": test | {"bleu_tokenised": kwargs.pop("valid", None)}}
        path = tmp_path / f"{corpus}/{direction}/{system}/seed{seed}/scores.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"corpus": corpus, "direction": direction, "system": system, "seed": seed}
        costs = {"parameters": 1_460_000, "tokens_per_second": 1500.4, "train_seconds": 1800, "workers": 2}
        made = {
            "commit": "c0ffee",
            "device": "CPU",
            "settings": {"training": {"lr": 1}},
            "decoding": {"beam": 5},
        }
        path.write_text(
            json.dumps(head | {"scores": scores, "signatures": signatures} | costs | made | kwargs)
        )
        if right is not None:
            one = [[*([right + (k + seed) % 2] * 4), 10, 9, 8, 7, 10, 10] for k in range(sentences)]
            rows = [COUNTS, *one]
            if not old:
                rows = [
                    [*COUNTS, *TOKENISED, *PROBABILITY],
                    *([*row, *row, -1, 3] for row in one),
                ]
            write_lines(path.with_name("sentences.csv"), [",".join(map(str, row)) for row in rows])
        return path

    return write


@pytest.fixture
def table(tmp_path):
    """Writes a table and returns the CSV's rows, the runs' rows, the Markdown's lines."""

    def write(spec, scores=(), parses=(), published=PUBLISHED, tasks=()):
        out = tmp_path / "tables/t"
        (tmp_path / "published.yaml").write_text(json.dumps(published))
        runs = {"scores": scores, "parses": parses, "tasks": tasks}
        write_table(options=ScoreOptions(**spec), published=tmp_path / "published.yaml", **runs, output=out)
        rows = [
            list(csv.DictReader((out.parent / f"t.{end}").open(encoding="utf-8")))
            for end in ("csv", "runs.csv")
        ]
        lines = (out.parent / "t.md").read_text(encoding="utf-8").splitlines()
        return *rows, lines

    return write


def cells(lines, *words):
    """The cells of the one row that starts with these words."""
    (line,) = [line for line in lines if line.startswith("| " + " | ".join(words) + " |")]
    return [cell.strip() for cell in line.strip("|").split("|")][len(words) :]


def test_a_table_names_all_commits_whose_code_trained_and_scored_its_runs(run, table):
    """Code of another commit may go on with a training: `any_code`."""
    attempts = [
        {"updates": 10, "commit": "abc"},
        {"updates": 20, "commit": "abd"},
        {"updates": 30, "commit": "abc"},
    ]
    runs = [run("transformer", 1, 30), run("transformer", 2, 31, attempts=attempts)]
    _, rows, notes = table(spec_of(["transformer"], seeds=(1, 2)), runs)
    assert [row["commit"] for row in rows] == ["c0ffee", "abc, abd, c0ffee"]
    assert "Made by the code of several commits: c0ffee, abc, abd." in notes


def test_means_deviations_differences_and_bold_by_hand(run, table):
    runs = [run("transformer", seed, bleu) for seed, bleu in ((1, 34.0), (2, 35.0), (3, 39.0))]
    runs += [run("grammar", seed, bleu) for seed, bleu in ((1, 35.0), (2, 36.0), (3, 35.5))]
    rows, _, markdown = table(spec_of(["transformer", "peer", "grammar"]), runs)
    # mean (34 + 35 + 39) / 3 = 36, sd sqrt((4 + 1 + 9) / 2), 36 - 34.71 = 1.29; mean 35.5, sd 0.5, 35.5 - 35.8 = -0.3
    assert cells(markdown, "Transformer", "here") == ["**36.00 ± 2.65 (+1.29)**"]
    assert cells(markdown, "Transformer", "published") == ["34.71 ± 0.12"]
    assert cells(markdown, "Grammar", "here") == ["35.50 ± 0.50 (−0.30)"]
    assert cells(markdown, "Peer", "quoted") == ["**36.00**"]
    assert not [line for line in markdown if line.startswith("| Peer | here")]
    assert cells(markdown, "System", "") == ["De→En tokenised BLEU"]
    notes = "\n".join(markdown)
    assert "over seeds 1, 2, 3; in parentheses the difference" in notes
    assert (
        "Published numbers: Kai and others 2024, A title. Quoted there, not measured by its authors: Peer (Lee 2020)."
        in notes
    )
    assert "A note." in notes
    assert "tokenised BLEU: case:mixed|tok:none." in notes
    assert "Commit: c0ffee." in notes
    assert "Missing" not in notes
    transformer, peer, grammar = rows
    assert (transformer["published"], transformer["origin"], transformer["paper"]) == (
        "34.71",
        "measured",
        "kai2024",
    )
    assert (float(grammar["mean"]), float(grammar["sd"]), grammar["seeds"], grammar["best"]) == (
        35.5,
        0.5,
        "3",
        "False",
    )
    assert float(grammar["difference"]) == pytest.approx(-0.3)
    assert (peer["mean"], peer["seeds"], peer["asked"], peer["origin"]) == ("", "0", "0", "quoted")


def test_a_note_stands_below_a_table_that_shows_one_of_its_numbers(run, table):
    published = copy.deepcopy(PUBLISHED)
    extra_result = {"measured": {"grammar": ["35.80", None]}, "quoted": {}, "note": "Of grammar alone."}
    published["results"].append(published["results"][0] | extra_result)
    published["results"][0]["measured"].pop("grammar")
    _, _, markdown = table(spec_of(["transformer", "grammar"]), published=published)
    assert {"A note.", "Of grammar alone."} <= {*markdown}
    _, _, markdown = table(spec_of(["transformer", "peer"]), published=published)
    assert "A note." in markdown
    assert "Of grammar alone." not in markdown


def test_the_best_is_the_best_mean_not_the_best_as_text(run, table):
    runs = [run("a", 1, 9.5), run("b", 1, 10.0), run("c", 1, 10.001)]
    _, _, markdown = table(spec_of(["a", "b", "c"], seeds=[1]), runs)
    assert [cells(markdown, name) for name in "ABC"] == [["9.50"], ["**10.00**"], ["**10.00**"]]
    assert "One seed (1); bold: the best of each column." in markdown
    _, _, markdown = table(spec_of(["a"], seeds=[1]), runs[:1])
    assert cells(markdown, "A") == ["9.50"]  # nothing to be better than


def test_a_sweep_marks_what_the_validation_set_chooses(run, table):
    metrics = ["valid_bleu_tokenised", "bleu_tokenised", "chrf"]
    spec = spec_of(["a", "b", "c"], seeds=[1, 2], directions=["de-en", "en-de"], metrics=metrics, sweep=True)
    found = {"a": (30, 34, 45), "b": (33, 33, 40), "c": (36, None, 47)}  # validation with two seeds, test
    runs = [
        run(system, seed, test, valid=valid)
        for system, (*valids, test) in found.items()
        for seed, valid in enumerate(valids, start=1)
    ]
    runs.append(run("a", 1, 40.0, direction="en-de", valid=20.0))
    rows, by_run, markdown = table(spec, runs)
    heads = ["validation tokenised BLEU", "test tokenised BLEU", "chrF"]
    assert cells(markdown, "System") == [f"{way} {head}" for way in ("De→En", "En→De") for head in heads]
    # means 32, 33 and 36, this of one seed; the test set would have chosen c, too, but not by its sum
    assert cells(markdown, "C")[:2] == ["**36.00 [1 of 2]**", "**47.00 ± 0.00**"]
    assert cells(markdown, "B")[:2] == ["33.00 ± 0.00", "40.00 ± 0.00"]
    assert cells(markdown, "A")[3:5] == ["20.00 [1 of 2]", "40.00 [1 of 2]"]  # alone: nothing is chosen
    assert any("bold: chosen by the highest mean of validation tokenised BLEU" in line for line in markdown)
    assert {row["system"] for row in rows if row["best"] == "True"} == {"c"}
    assert [row["valid_bleu_tokenised"] for row in by_run][:2] == ["30.0", "34.0"]
    signatures = [line for line in markdown if line.startswith(("tokenised BLEU:", "chrF:"))]
    assert signatures == ["tokenised BLEU: case:mixed|tok:none.", "chrF: nc:6."]


def test_the_test_set_chooses_nothing(run, table):
    spec = spec_of(["a", "b"], seeds=[1], metrics=["valid_bleu_tokenised", "bleu_tokenised"], sweep=True)
    _, _, markdown = table(spec, [run("a", 1, 50.0, valid=30.0), run("b", 1, 40.0, valid=31.0)])
    assert cells(markdown, "A") == ["30.00", "50.00"]
    assert cells(markdown, "B") == ["**31.00**", "**40.00**"]


def test_scores_of_the_test_set_alone_are_refused(run, table):
    path = run("a", 1, 1.0)
    scores = json.loads(path.read_text())
    path.write_text(json.dumps(scores | {"scores": scores["scores"]["test"]}))  # as they once were
    with pytest.raises(UserError, match=r"scores\.json: no 'test' in it; delete it and make it again"):
        table(spec_of(["a"], seeds=[1]), [path])


def test_the_runs_have_one_row_each_in_the_tables_order(run, table):
    spec = spec_of(["transformer", "grammar"], seeds=[2, 10], directions=["de-en", "en-de"])
    runs = [
        run("grammar", 10, 1.0),
        run("grammar", 2, 0.1 + 0.2),
        run("transformer", 2, 3.0, direction="en-de"),
        run("transformer", 2, 4.0),
    ]
    _, rows, _ = table(spec, runs)
    keys = [(row["direction"], row["system"], row["seed"]) for row in rows]
    assert keys == [
        ("de-en", "transformer", "2"),
        ("de-en", "grammar", "2"),
        ("de-en", "grammar", "10"),
        ("en-de", "transformer", "2"),
    ]
    assert float(rows[1]["sacrebleu"]) == 0.1 + 0.2
    assert rows[0]["signature_sacrebleu"] == "case:mixed|tok:13a"
    assert (rows[0]["parameters"], rows[0]["commit"], rows[0]["corpus"]) == ("1460000", "c0ffee", "demo")


@pytest.mark.parametrize(("right", "mark"), [(5, ""), (7, "‡")])
def test_marks_of_one_seed(run, table, right, mark):
    spec = spec_of(["transformer", "grammar"], seeds=[1])
    runs = [run("transformer", 1, 30.0, right=5), run("grammar", 1, 31.0, right=right)]
    rows, by_run, markdown = table(spec, runs)
    assert cells(markdown, "Grammar", "here") == [f"**31.00{mark} (−4.80)**"]
    assert (rows[1]["p"], rows[1]["p_seeds"], rows[1]["baseline"]) == (
        rows[1]["p_test_set"],
        "",
        "transformer",
    )
    assert (rows[0]["p"], rows[0]["baseline"]) == ("", "")
    assert not {"p_bleu_tokenised", "counts"} & by_run[0].keys()
    (note,) = [line for line in markdown if "bootstrap" in line]
    assert note == (
        "† p < 0.05, ‡ p < 0.01 against Transformer, by a paired bootstrap over sentences and seeds (1,000 samples); "
        "one seed, tested by the first alone, says nothing about the spread over seeds. Not corrected for the "
        "number of comparisons."
    )


def test_marks_need_the_seeds_to_agree(run, table):
    spec = spec_of(["transformer", "grammar"])
    clear = [run("transformer", s, 30 + s / 10, right=3) for s in (1, 2, 3)] + [
        run("grammar", s, 32 + s / 10, right=5) for s in (1, 2, 3)
    ]
    rows, _, markdown = table(spec, clear)
    assert cells(markdown, "Grammar", "here")[0].startswith("**32.20 ± 0.10‡")
    assert float(rows[1]["p"]) == max(float(rows[1]["p_test_set"]), float(rows[1]["p_seeds"]))
    assert "and by Welch's t-test over the seeds" in "\n".join(markdown)
    blurred = [run("grammar", seed, bleu, right=5) for seed, bleu in ((1, 28.0), (2, 36.0), (3, 32.6))]
    _, _, markdown = table(spec, clear[:3] + blurred)  # the same counts, but a wide spread
    assert cells(markdown, "Grammar", "here")[0].startswith("**32.20 ± 4.01 (")


def test_runs_without_counts_are_named_and_not_tested(run, table):
    spec = spec_of(["transformer", "grammar", "a"], seeds=[1], metrics=["bleu_tokenised", "sacrebleu"])
    runs = [
        run("transformer", 1, 30.0, right=3),
        run("grammar", 1, 31.0, right=5, old=True),
        run("a", 1, 1.0),
    ]
    rows, _, markdown = table(spec, runs)
    marks = {(row["system"], row["metric"]) for row in rows if row["p"]}
    assert marks == {("grammar", "sacrebleu")}  # older versions counted for it alone
    assert "Not tested, for want of counts by sentence (score again): Grammar De→En, A De→En." in markdown


def test_runs_of_other_sentences_are_refused(run, table):
    runs = [run("transformer", 1, 30.0, right=3), run("grammar", 1, 31.0, right=5, sentences=39)]
    with pytest.raises(UserError, match=r"^de-en, grammar and transformer: not scored on the same sentences"):
        table(spec_of(["transformer", "grammar"], seeds=[1]), runs)


def test_missing_and_diverged_runs_are_never_averaged_over_in_silence(run, table):
    spec = spec_of(["transformer", "grammar"], seeds=[1, 2, 3, 4, 5], directions=["de-en", "en-de"])
    runs = [run("transformer", seed, 30.0, right=3) for seed in (1, 2, 3, 4, 5)]
    scores = {1: 31.0, 2: float("nan"), 4: float("inf"), 5: None}
    runs += [run("grammar", seed, score, right=5) for seed, score in scores.items()]
    rows, _, markdown = table(spec, runs)
    assert cells(markdown, "Grammar", "here") == ["**31.00‡ (−4.80) [1 of 5]**", "–"]
    assert cells(markdown, "Transformer", "here") == ["30.00 ± 0.00 (−4.71)", "–"]
    assert (rows[1]["seeds"], rows[1]["asked"], rows[1]["p_seeds"]) == ("1", "5", "")
    notes = "\n".join(markdown)
    seeds = "(seeds 1, 2, 3, 4, 5)"
    missing = f"Grammar De→En (seed 3); Transformer En→De {seeds}; Grammar En→De {seeds}"
    assert f"Missing: {missing}. To make what is missing: snakemake " in notes
    assert "No finite score, so left out of the means: Grammar De→En (seeds 2, 4, 5)." in notes


def test_a_diverged_run_is_marked_and_stays_in_the_mean(run, table):
    why = "perplexity 5.2e+21, word frequencies alone have 310"
    runs = [run("a", 1, 30.0, diverged=None), run("a", 2, 0.1, diverged=why)]
    rows, kept, markdown = table(spec_of(["a"], seeds=(1, 2)), runs)
    first = next(line for line in markdown[2:] if line and line[0] != "|")
    assert first == f"Diverged, but in the means: A De→En (seed 2), {why}."
    assert cells(markdown, "A") == ["15.05 ± 21.14 [1 diverged]"]
    assert float(rows[0]["mean"]) == pytest.approx(15.05)
    assert [row["diverged"] for row in kept] == ["", why]


def test_a_table_without_any_run_shows_what_is_published(table):
    rows, runs, markdown = table(spec_of(["transformer", "peer", "grammar"]))
    assert runs == []
    assert cells(markdown, "Grammar", "here") == ["–"]
    assert cells(markdown, "Grammar", "published") == ["35.80"]
    assert "Missing: all 6 runs. To make what is missing: " in "\n".join(markdown)
    assert all(row["mean"] == row["p"] == "" for row in rows)


def test_a_table_without_runs_and_numbers_is_refused(table):
    with pytest.raises(UserError, match="tables/t: no experiment runs its systems, no paper has"):
        table(spec_of(["peer"], directions=["en-de"]))


def test_the_same_runs_in_any_order_give_the_same_bytes(run, table, tmp_path):
    spec = spec_of(["a", "b"])
    runs = [run(system, seed, seed * 1.1, right=seed) for system in ("a", "b") for seed in (1, 2, 3)]
    table(spec, runs)
    first = [path.read_bytes() for path in sorted((tmp_path / "tables").iterdir())]
    table(spec, runs[::-1])
    assert [path.read_bytes() for path in sorted((tmp_path / "tables").iterdir())] == first
    assert len(first) == 5


def test_a_full_disk_leaves_all_files_as_they_were(run, table, tmp_path, monkeypatch):
    table(spec_of(["a"], seeds=(1,)), [run("a", 1, 30.0)])
    before = {path: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    synced, whole = [], os.fsync

    def fsync(handle):
        synced.append(handle)
        if len(synced) == len(before):
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(handle)

    monkeypatch.setattr(disk.os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        table(spec_of(["a"], seeds=(1,)), [run("a", 1, 31.0)])
    assert {path: path.read_bytes() for path in (tmp_path / "tables").iterdir()} == before


def test_ter_and_a_function_of_the_users_stand_in_files_of_their_own(run, table):
    scores = [run(system, seed, 30.0, right=5) for system in ("transformer", "grammar") for seed in (1, 2, 3)]

    def measured(metric, *values, signature="signature"):
        for path, value in zip(scores, values, strict=True):
            counts = [[value + place % 3 for place in range(40)], [1] * 40]
            found = {"score": sum(counts[0]) / 40, "signature": signature, "counts": counts}
            path.with_name(f"metric.{metric}.json").write_text(json.dumps(found))

    measured("ter", 60, 61, 62, 40, 41, 42)
    measured("mine.f", 60, 61, 62, 40, 41, 42, signature="mine")
    spec = spec_of(["transformer", "grammar"], metrics=("ter", "mine.f"))
    rows, runs, lines = table(spec, scores)
    best = {(row["metric"], row["system"]) for row in rows if row["best"] == "True"}
    assert best == {("ter", "grammar"), ("mine.f", "transformer")}  # the lowest, the highest
    assert cells(lines, "Grammar") == ["**41.98 ± 1.00‡**", "41.98 ± 1.00‡"]
    assert float(runs[-1]["ter"]) == 42 + 39 / 40
    assert "TER: signature." in lines
    assert "mine.f: mine." in lines
    scores[0].with_name("metric.ter.json").unlink()
    rows, _, lines = table(spec, scores)
    assert [row["seeds"] for row in rows] == ["2", "3", "3", "3"]
    assert "No finite score, so left out of the means: Transformer De→En (seed 1)." in lines
    measured("ter", *[60] * 6, signature="other")
    scores[0].with_name("metric.ter.json").write_text('{"score": 1, "signature": "s", "counts": [[1], [1]]}')
    with pytest.raises(UserError, match=r"signature_ter differ between .*make the older run again"):
        table(spec, scores)


def test_other_signatures_in_one_column_are_refused_in_two_they_are_both_named(run, table):
    lower = SIGNATURES | {"bleu_tokenised": "case:lc|tok:none"}
    spec = spec_of(["a"], directions=["de-en", "en-de"])
    one = run("a", 1, 1.0)
    with pytest.raises(
        UserError, match=r"signature_bleu_tokenised differ .* seed 1 \(case:mixed.*seed 2 \(case:lc"
    ):
        table(spec, [one, run("a", 2, 1.0, signatures=lower)])
    _, _, markdown = table(spec, [one, run("a", 1, 1.0, direction="en-de", signatures=lower)])
    assert "tokenised BLEU (demo De→En): case:mixed|tok:none." in markdown
    assert "tokenised BLEU (demo En→De): case:lc|tok:none." in markdown


def test_other_settings_in_one_cell_or_another_beam_in_one_column_are_refused(run, table):
    spec = spec_of(["a", "b"])
    one = run("a", 1, 1.0)
    with pytest.raises(UserError) as error:
        table(spec, [one, run("a", 2, 1.0, settings={"training": {"lr": 2}})])
    assert str(error.value) == (
        "settings differ between a on demo de-en, seed 1 (training.lr: 1) and a on demo de-en, seed 2 "
        "(training.lr: 2); make the older run again"
    )
    with pytest.raises(UserError, match=r"decoding differ .*beam: 5.* and b .*beam: 4"):
        table(spec, [one, run("b", 1, 1.0, decoding={"beam": 4})])
    table(spec, [one, run("b", 1, 1.0, settings={"training": {"lr": 2}}, commit="other")])


def test_runs_that_do_not_belong_are_refused(run, table, tmp_path):
    spec = spec_of(["a"])
    one = run("a", 1, 1.0)
    with pytest.raises(UserError, match="a on demo de-en, seed 1: given twice"):
        table(spec, [one, one])
    for other in (
        run("b", 1, 1.0),
        run("a", 4, 1.0),
        run("a", 1, 1.0, direction="en-de"),
        run("a", 1, 1.0, corpus="x"),
    ):
        with pytest.raises(UserError, match="not in this table; leave the file out"):
            table(spec, [one, other])
    with pytest.raises(UserError, match=r"gone\.json: no such file"):
        table(spec, [tmp_path / "gone.json"])
    one.write_text("{")
    with pytest.raises(UserError, match=r"scores\.json: not JSON"):
        table(spec, [one])
    one.write_text('{"corpus": "demo", "scores": {}}')
    with pytest.raises(UserError, match="no 'direction' in it"):
        table(spec, [one])
    assert not (tmp_path / "tables").exists()


def test_costs(run, table):
    spec = spec_of(["a"], seeds=[1, 2], metrics=["parameters", "tokens_per_second", "device_hours", "memory"])
    runs = [run("a", 1, 1.0, memory=2048.0), run("a", 2, 1.0, train_seconds=3600)]
    _, _, markdown = table(spec, runs)
    # two devices for half an hour, then for an hour
    assert cells(markdown, "A") == ["1.5", "1500 ± 0", "1.50 ± 0.71", "2.00 [1 of 2]"]
    assert "Trained here on: CPU." in markdown


def test_parsing_scores_are_those_of_the_papers_protocol(table, tmp_path):
    spec = spec_of(["a"], seeds=[1, 2], metrics=["precision", "recall", "f1"])
    paths = []
    for seed, f1 in ((1, 30.0), (2, 31.0)):
        scores = {"precision": f1 + 1, "recall": f1 - 1, "f1": f1, "sentence_f1": 0.0}
        other = {"sentences": 9, "rows": {"induced": dict.fromkeys(scores, 99.0)}}
        head = {"corpus": "demo", "direction": "de-en", "system": "a", "seed": seed}
        paths.append(tmp_path / f"parse{seed}.json")
        paths[-1].write_text(
            json.dumps(head | {"protocols": {"words": other, "paper": other | {"rows": {"induced": scores}}}})
        )
    _, _, markdown = table(spec, parses=paths)
    assert cells(markdown, "A") == ["31.50 ± 0.71", "29.50 ± 0.71", "30.50 ± 0.71"]
    paths[0].write_text(json.dumps(head | {"protocols": {"words": other}}))
    with pytest.raises(UserError, match=r"parse1\.json: no paper in protocols"):
        table(spec, parses=paths)


@pytest.fixture
def task_scores(tmp_path):
    """Writes scores.json of a run on a task, or without a system its baselines.json, and returns its path."""

    def write(task, scores, system=None, seed=None, **kwargs):
        path = tmp_path / f"{task}.{system}.{seed}.json"
        run = {"system": system, "seed": seed, "commit": "c0ffee", "settings": {"lr": 1}} if system else {}
        path.write_text(json.dumps({"corpus": "glue", "task": task, "scores": scores} | run | kwargs))
        return path

    return write


def glue_spec(seeds):
    runs = {"roberta": seeds, "majority": [0]}
    places = [
        ("CoLA", "cola", "dev"),
        ("MNLI-m", "mnli", "dev_matched"),
        ("MNLI-mm", "mnli", "dev_mismatched"),
    ]
    columns = [{"column": name, "task": task, "part": part, "runs": runs} for name, task, part in places]
    columns.append({"column": "average", "task": None, "runs": {}})
    return {
        "title": "GLUE",
        "metrics": ["glue"],
        "sweep": False,
        "labels": [["roberta", "RoBERTa"], ["majority", "Majority"]],
        "columns": [column | {"corpus": "glue", "group": ""} for column in columns],
        "notes": [],
    }


def test_tasks_of_language_understanding(table, task_scores):
    """Means, medians, both sets of MNLI, the average by seed over the columns, baselines as a row."""

    def mnli(first, second):
        return {"dev_matched": {"accuracy": first}, "dev_mismatched": {"accuracy": second}}

    runs = [
        task_scores("cola", {"dev": {"matthews": value}}, "roberta", seed)
        for seed, value in ((1, 60), (2, 0), (3, 63))
    ]
    runs += [task_scores("mnli", mnli(80, 82), "roberta", seed) for seed in (1, 2)]
    baselines = [
        task_scores("cola", {"majority": {"dev": {"matthews": 0}}}),
        task_scores("mnli", {"majority": mnli(35, 36)}),
    ]
    rows, by_run, markdown = table(glue_spec([1, 2, 3]), tasks=[*runs, *baselines])
    # means (60 + 0 + 63) / 3 = 41, sd 35.5387...; averages of seeds 1 and 2: (60 + 80 + 82) / 3 = 74 and 54
    assert cells(markdown, "RoBERTa", "here") == [
        "**41.0 ± 35.5**",
        "**80.0 ± 0.0 [2 of 3]**",
        "**82.0 ± 0.0 [2 of 3]**",
        "**64.0 ± 14.1 [2 of 3]**",
    ]
    assert cells(markdown, "RoBERTa", "median") == ["60.0", "80.0", "82.0", "64.0"]
    assert cells(markdown, "Majority", "here") == ["0.0", "35.0", "36.0", "23.7"]
    assert "seeds 1, 2, 3" in "\n".join(markdown)
    assert "nan" not in "\n".join(markdown)  # an average has no commit of its own
    assert "Missing: RoBERTa MNLI-m (seed 3); RoBERTa MNLI-mm (seed 3)." in "\n".join(markdown)
    assert {row["direction"] for row in by_run} == {"CoLA", "MNLI-m", "MNLI-mm", "average"}
    assert [row["median"] for row in rows if row["system"] == "roberta"] == ["60.0", "80.0", "82.0", "64.0"]


def test_answers_are_tested_example_by_example(table, task_scores, tmp_path):
    spec, labels = glue_spec([1]), ("entailment", "neutral")
    spec["labels"] = [["roberta", "RoBERTa"], ["sla", "SLA"], ["majority", "Majority"]]
    runs = {"roberta": [1], "sla": [1], "majority": [0]}
    spec["columns"] = [column | {"runs": runs} for column in spec["columns"][1:3]] + spec["columns"][-1:]
    parts = {part: {"accuracy": 50} for part in ("dev_matched", "dev_mismatched")}
    tasks = [task_scores("mnli", {"majority": parts})]
    for system, wrong in (("roberta", 20), ("sla", 2)):
        lines = [f"dev_matched,{labels[k % 2]},neutral" for k in range(60)]  # alike
        lines += [f"dev_mismatched,{labels[(k + (k < wrong)) % 2]},{labels[k % 2]}" for k in range(60)]
        folder = tmp_path / system
        folder.mkdir()
        scores = parts | {"dev_mismatched": {"accuracy": 100 - wrong / 0.6}}
        tasks.append(task_scores("mnli", scores, system, 1).rename(folder / "scores.json"))
        write_lines(folder / "examples.csv", ["part,answer,gold", *lines])
    rows, _, markdown = table(spec, tasks=tasks)
    tested = {(row["system"], row["column"]): float(row["p"]) for row in rows if row["baseline"]}
    assert [*tested] == [("sla", "MNLI-m"), ("sla", "MNLI-mm")]  # neither trivial baselines nor the average
    assert tested["sla", "MNLI-m"] == 1
    assert tested["sla", "MNLI-mm"] < 0.01
    assert any("by a paired bootstrap over examples and seeds" in line for line in markdown)


def test_runs_of_a_task_with_other_settings_or_of_another_table_are_refused(table, task_scores):
    one = task_scores("cola", {"dev": {"matthews": 1}}, "roberta", 1)
    other = task_scores("cola", {"dev": {"matthews": 1}}, "roberta", 2, settings={"lr": 2})
    with pytest.raises(UserError, match=r"settings differ between roberta on glue CoLA, seed 1 \(lr: 1\)"):
        table(glue_spec([1, 2]), tasks=[one, other])
    with pytest.raises(UserError, match="roberta on glue rte dev, seed 1: not in this table"):
        table(glue_spec([1]), tasks=[task_scores("rte", {"dev": {"accuracy": 1}}, "roberta", 1)])
    with pytest.raises(UserError, match="no 'matthews' in it"):
        table(glue_spec([1]), tasks=[task_scores("cola", {"dev": {"accuracy": 1}}, "roberta", 1)])


def test_a_run_of_a_task_given_twice_is_refused(table, task_scores, tmp_path):
    one = task_scores("cola", {"dev": {"matthews": 1}}, "roberta", 1)
    copy = shutil.copy(one, tmp_path / "copy.json")
    with pytest.raises(UserError, match="roberta on glue CoLA, seed 1: given twice; name each run once"):
        table(glue_spec([1, 2]), tasks=[one, copy])


def test_runs_from_weights_of_one_name_that_were_trained_otherwise_are_refused(table, task_scores):
    """For each task, over the tasks of an average, and where one system continues another's weights."""
    spec = glue_spec([1, 2])
    spec["labels"].append(["synclm", "SynCLM"])
    spec["columns"] = [column | {"runs": column["runs"] | {"synclm": [1]}} for column in spec["columns"]]

    def run(task, part, metric, system, seed, **start):
        return task_scores(task, {part: {metric: 1}}, system, seed, start={"weights": "base"} | start)

    def base(lr):
        return {"settings": {"training": {"lr": lr}}}

    cola = run("cola", "dev", "matthews", "roberta", 1, **base(0.1))
    for other in (
        run("cola", "dev", "matthews", "roberta", 2, **base(0.2)),
        run("mnli", "dev_matched", "accuracy", "roberta", 1, **base(0.2)),
        run("cola", "dev", "matthews", "synclm", 1, weights="more", start={"weights": "base"} | base(0.2)),
    ):
        with pytest.raises(UserError, match=r"weights differ .*\(settings.training.lr: 0.1\)"):
            table(spec, tasks=[cola, other])


def test_pairs_that_two_sets_share_are_a_note(run, table):
    shared = {"test in train": 1200, "test in valid": 0, "valid in train": 3}
    scores = [run(system, 1, 30.0, overlap=shared) for system in ("transformer", "grammar")]
    message = "Pairs that occur in two sets, demo De→En: 1,200 test in train, 3 valid in train."
    *_, markdown = table(spec_of(["transformer", "grammar"], seeds=(1,)), scores)
    assert markdown.count(message) == 1
    none = [run(system, 1, 30.0, overlap=dict.fromkeys(shared, 0)) for system in ("transformer", "grammar")]
    *_, markdown = table(spec_of(["transformer", "grammar"], seeds=(1,)), none)
    assert "in two sets" not in "".join(markdown)


def test_dropped_training_pairs_are_a_note(run, table):
    dropped = "1,916 of 20,000 training pairs are dropped: 1,916 of too different length"
    scores = [run(system, 1, 30.0, dropped=dropped) for system in ("transformer", "grammar")]
    *_, markdown = table(spec_of(["transformer", "grammar"], seeds=(1,)), scores)
    assert markdown.count(f"demo De→En: {dropped}.") == 1
    scores = [run(system, 1, 30.0) for system in ("transformer", "grammar")]
    *_, markdown = table(spec_of(["transformer", "grammar"], seeds=(1,)), scores)
    assert "dropped" not in "".join(markdown)
