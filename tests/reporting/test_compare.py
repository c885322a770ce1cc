"""`synmask compare`: any systems' translations against the first system's."""

import csv
import re
import subprocess
import sys

import pytest

from browser import SMALLEST
from synmask.pipeline.cli import main
from synmask.pipeline.evaluation.bleu import COUNTS, bleu
from synmask.pipeline.reporting.score_text import score_texts

WORDS = "the dog sees a small cat in the old house near a river today".split()  # noqa: SIM905
REFERENCES = [" ".join(WORDS[start : start + 4 + start % 6]) + " ." for start in range(9)] * 4


def spoilt(step):
    """The references; every `step`-th lacks its second word."""
    lines = [line.split() for line in REFERENCES]
    return [" ".join(line[:1] + line[2:] if n % step == 0 else line) for n, line in enumerate(lines)]


@pytest.fixture
def files(tmp_path):
    made = {
        "ref": REFERENCES,
        "base.1": spoilt(2),
        "base.2": spoilt(3),
        "ours.1": spoilt(7),
        "ours.2": spoilt(9),
    }
    for name, lines in made.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def compare(folder, *systems, **options):
    words = ["compare", str(folder / "ref")]
    for name, *seeds in systems:
        words += ["--system", name, *(str(folder / seed) for seed in seeds)]
    main([*words, *(word for name, value in options.items() for word in (f"--{name}", str(value)))])


def test_scores_differences_and_tests_of_systems(files, capsys):
    compare(files, ("Base", "base.1", "base.2"), ("Ours", "ours.1", "ours.2"), output=files / "out", gain=2)
    base, ours = csv.DictReader((files / "out.csv").read_text().splitlines())
    alone = [
        score_texts(files / name, files / "ref", language="en")["scores"] for name in ("ours.1", "ours.2")
    ]
    assert ours["BLEU"] == f"{sum(one['sacrebleu'] for one in alone) / 2:.2f}"
    assert ours["chrF"] == f"{sum(one['chrf'] for one in alone) / 2:.2f}"
    assert float(ours["difference"]) == pytest.approx(float(ours["BLEU"]) - float(base["BLEU"]), abs=0.011)
    assert (base["seeds"], base["difference"], ours["seeds"]) == ("2", "", "2")
    assert float(ours["p"]) == max(float(ours["p test set"]), float(ours["p seeds"]))
    assert int(ours["needed"]) > 2
    printed = capsys.readouterr().out
    assert re.search(r"^Ours +2 ", printed, re.M)
    assert "sacrebleu: nrefs:1|case:mixed" in printed
    assert "; empty with one seed: p says nothing of others then\n" in printed
    page = (files / "out.html").read_text()
    for line in (
        "sacrebleu: nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        "p: the larger of the two: judge by it; below 0.05, the difference is significant",
        "needed: the fewest seeds per side that find a difference of 2 BLEU four times out of five",
    ):
        assert f"\n{line}\n" in printed
        assert f"<li>{line}</li>" in page


def test_another_metric_takes_the_place_of_bleu(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (files / "compared.py").write_text(
        "def words(hypotheses, references, sources): return [len(h.split()) for h in hypotheses]"
    )
    systems = [("Base", "base.1", "base.2"), ("Ours", "ours.1", "ours.2")]
    compare(files, *systems, output=files / "out", metric="compared.words")
    _, ours = csv.DictReader((files / "out.csv").read_text().splitlines())
    counts = [len(line.split()) for step in (7, 9) for line in spoilt(step)]
    assert ours["compared.words"] == f"{sum(counts) / len(counts):.2f}"
    assert float(ours["difference"]) > 0
    assert "compared.words: the mean over all segments" in capsys.readouterr().out
    compare(files, *systems, metric="ter")
    assert "difference: of TER from Base's" in capsys.readouterr().out


def test_a_name_from_right_to_left_does_not_move_its_numbers(files, capsys):
    compare(files, ("Base", "base.1"), ("نظام", "ours.1"), output=files / "out")
    assert re.search("^\u2068نظام\u2069 +1 ", capsys.readouterr().out, re.M)
    assert [*csv.DictReader((files / "out.csv").read_text().splitlines())][1]["system"] == "نظام"
    assert "<dt>\u2068نظام\u2069 1 <small>" in (files / "out.html").read_text()


def test_the_page_shows_groups_and_translations_by_gain(files, open_page):
    systems = [("Base", "base.1"), ("<Ours>", "ours.1")]
    compare(files, *systems, output=files / "out", source=files / "base.2", train=files / "base.2")
    page = open_page(files / "out.html", f"return {SMALLEST}")
    assert float(page.result) >= 13
    assert "<h1>Base, &lt;Ours&gt;</h1>" in (files / "out.html").read_text()
    assert not page.console
    rows = [attributes for attributes in page.of("article")]
    assert 10 < len(rows) <= 30
    text = (files / "out.html").read_text()
    assert "BLEU by number of words in the reference<" in text
    assert "number of rare words in the reference, seen at most 2 times in the training text<" in text
    short = [n for n, line in enumerate(REFERENCES) if len(line.split()) <= 5]
    metric = bleu("sacrebleu", "en")
    lines = [(files / "base.1").read_text().splitlines()[n] for n in short]
    expected = metric.corpus_score(lines, [[REFERENCES[n] for n in short]]).score
    assert (
        f'<th scope="row">1–5</th><td class="number">{len(short)}</td><td class="number">{expected:.2f}</td>'
        in text
    )
    assert len(COUNTS) == 10


def test_chinese_words_are_the_metrics(tmp_path):
    """Lines of 6 and of 13 characters; 红 is the one that the training text lacks."""
    lines = {"ref": ["他喜欢音乐。", "他喜欢音乐,他喜欢红音乐。"]}
    lines |= {
        "a": lines["ref"],
        "b": ["他喜欢音乐。", "他喜欢音乐,他喜欢黑音乐。"],
        "train": ["他喜欢音乐,。"] * 3,
    }
    for name, text in lines.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    for name in ("zh", "zho"):
        compare(
            tmp_path, ("A", "a"), ("B", "b"), language=name, output=tmp_path / "out", train=tmp_path / "train"
        )
        page = (tmp_path / "out.html").read_text(encoding="utf-8")
        groups = re.findall(r'<th scope="row">(.+?)</th><td class="number">(\d+)</td>', page)
        assert groups == [("6–10", "1"), ("11–15", "1"), ("0", "1"), ("1", "1")]
        assert re.findall("<mark>(.*?)</mark>", page) == ["Marked", "黑"]
        assert "<mark>黑</mark>音乐。" in page


def test_one_seed_and_several_rivals(files, capsys):
    compare(files, ("Base", "base.1"), ("A", "ours.1"), ("B", "base.2"))
    # without the standard deviation, which one seed has not
    a, b = (re.split(" {2,}", line) for line in capsys.readouterr().out.splitlines()[2:4])
    assert a[5] == b[5] == "one seed: test set only"
    assert float(a[6]) == pytest.approx(2 * min(float(a[7]), float(b[7])), abs=0.002) or a[6] == "1.000"


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ([("Base", "base.1")], "give --system NAME FILE… twice or more"),
        ([("Base", "base.1"), ("Base", "ours.1")], "each with a name of its own"),
        ([("Base", "base.1"), ("Ours",)], "a file per seed"),
        ([("Base", "base.1"), ("Ours", "nothing")], "nothing: no such file"),
        ([("Base", "base.1"), ("Ours", "ours.1", "ours.1")], "ours.1: given twice for Ours"),
    ],
)
def test_a_wrong_call_gets_one_line(files, capsys, systems, message):
    with pytest.raises(SystemExit):
        compare(files, *systems, output=files / "out")
    assert message in capsys.readouterr().err
    assert not (files / "out.csv").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"gain": "nan"}, "--gain: must be"),
        ({"gain": 0}, "--gain: must be above 0"),
        ({"output": "."}, ".: a folder"),
    ],
)
def test_a_wrong_option_gets_one_line(files, capsys, option, message):
    with pytest.raises(SystemExit):
        compare(files, ("Base", "base.1", "base.2"), ("Ours", "ours.1", "ours.2"), **option)
    assert message in capsys.readouterr().err


def test_each_file_is_read_once(files):
    """As `<(…)` of a shell can be."""
    whole = ["compare", "ref", "--system", "A", "base.1", "--system", "B", "ours.1", "--source", "ref"]
    words = [f"<(cat {files / word})" if (files / word).is_file() else word for word in whole]
    call = f"{sys.executable} -m synmask {' '.join(words)} --output {files / 'out'}"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "<mark>" in (files / "out.html").read_text()
