"""`synmask new-corpus`: what it reads, draws and writes, and what it refuses."""

import gzip
import shutil
from pathlib import Path

import pytest

from synmask.pipeline.cli import main, new_corpus
from synmask.pipeline.config.loading import load, project_files, read_all

ROOT = Path(__file__).parents[2]
PAIRS = [(f"مرحبا {number} عالم", f"Hello {number}  world") for number in range(600)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A project's configuration in the current folder."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for name in ("config.yaml", "workflow", "Snakefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    write(PAIRS)
    return tmp_path


def write(pairs, stem="mine", end="\n", start=""):
    for language, side in zip(("ar", "en"), zip(*pairs, strict=True), strict=True):
        Path(f"{stem}.{language}").write_text(start + "".join(f"{line}{end}" for line in side), newline="")


def unit(ar, en):
    bold = '<bpt i="1">&lt;b></bpt>'
    return f'<tu><tuv xml:lang="AR-EG"><seg>{bold}{ar}</seg></tuv><tuv xml:lang="en-GB"><seg>{en}</seg></tuv></tu>'


def text_of(name):
    return {
        path.name: path.read_text(encoding="utf-8").splitlines() for path in Path(f"data/{name}").iterdir()
    }


def test_all_forms_of_a_text_make_the_same_corpus(capsys):
    columns = [f"{en}\t7\t{ar}\n" for ar, en in PAIRS]
    Path("named.tsv").write_text("".join(["en\tscore\tar\n", *columns]), encoding="utf-8")
    Path("two.tsv").write_text("".join(f"{ar}\t{en}\n" for ar, en in PAIRS), encoding="utf-8")
    other = '<tu><tuv xml:lang="fr"><seg>Bonjour</seg></tuv></tu>'
    body = f'<tmx version="1.4"><header/><body>{other}{"".join(unit(*pair) for pair in PAIRS)}</body></tmx>'
    with gzip.open("memory.tmx.gz", "wb") as file:
        file.write(f'<?xml version="1.0" encoding="UTF-16"?>{body}'.encode("utf-16"))
    write(PAIRS, "windows", "\r\n", "\ufeff")
    both = ["--languages", "ar", "en"]
    main(["new-corpus", "a", "--files", "mine.ar", "mine.en"])
    main(["new-corpus", "b", "--files", "windows.ar", "windows.en"])
    main(["new-corpus", "c", "--tsv", "named.tsv", *both])
    main(["new-corpus", "d", "--tsv", "two.tsv", *both])
    main(["new-corpus", "e", "--tmx", "memory.tmx.gz", *both])
    texts = [text_of(name) for name in "abcde"]
    assert texts == [texts[0]] * 5
    splits = [
        [*zip(texts[0][f"{split}.ar"], texts[0][f"{split}.en"], strict=True)]
        for split in ("train", "valid", "test")
    ]
    assert [*map(len, splits)] == [480, 60, 60]
    assert sorted(pair for split in splits for pair in split) == sorted(
        (ar, " ".join(en.split())) for ar, en in PAIRS
    )
    assert capsys.readouterr().out.endswith("Next:\n  synmask doctor e\n  synmask plan e\n  snakemake e\n")


def test_the_entry_is_right_and_passes_doctor(capsys):
    write([*PAIRS, *PAIRS[:300], ("مرحبا", "Hello and so on, a long one"), ("", "")])
    main(["new-corpus", "talks", "--files", "mine.ar", "mine.en"])
    text = Path("config/talks.yaml").read_text(encoding="utf-8")
    train, test = (text_of("talks")[f"{split}.ar"] for split in ("train", "test"))
    assert not {*train} & {*test}
    assert "# Arabic, English" in text
    config = load(read_all(project_files()))
    corpus = config.corpora["talks"]
    assert corpus.model == config.corpora["demo"].model
    assert corpus.pairs == {"train": len(train), "valid": 60, "test": 60}
    assert config.experiments["talks"].directions == ("ar-en",)
    assert config.tables["talks-scores"].experiments == ("talks",)
    capsys.readouterr()
    main(["doctor", "talks", "talks-scores"])
    assert "good   6 files of yours\n" in capsys.readouterr().out


def test_an_editor_s_files_beside_the_rules_are_no_rules(folder):
    (folder / "workflow").unlink()
    shutil.copytree(ROOT / "workflow", folder / "workflow")
    (folder / "workflow/rules/.train.smk.swp").write_bytes(b"\xb0")
    main(["new-corpus", "talks", "--files", "mine.ar", "mine.en"])
    assert text_of("talks")


def test_sets_that_are_given_stay():
    write(PAIRS[:20], "valid")
    write([*PAIRS[590:], ("جديد", "new"), ("", "")], "test")
    files = [f"{stem}.{side}" for stem in ("mine", "valid", "test") for side in ("ar", "en")]
    main(["new-corpus", "talks", "--files", *files])
    text = Path("config/talks.yaml").read_text(encoding="utf-8")
    assert "pairs: {train: 600, valid: 20, test: 12}" in text


@pytest.mark.parametrize(
    ("pairs", "words"), [(599, "based_on: demo "), (600, "based_on: multi30k-small "), (700, "bpe: ")]
)
def test_the_size_of_the_model_follows_the_number_of_pairs(pairs, words, monkeypatch):
    monkeypatch.setattr(new_corpus, "TINY_PAIRS", 600)
    monkeypatch.setattr(new_corpus, "SMALL_PAIRS", 700)
    write([(f"{number}", f"{number}") for number in range(pairs)])
    write(PAIRS, "other")
    files = [f"{stem}.{side}" for stem in ("mine", "other", "other") for side in ("ar", "en")]
    main(["new-corpus", "talks", "--files", *files])
    lines = Path("config/talks.yaml").read_text(encoding="utf-8").splitlines()
    [after] = [number for number, line in enumerate(lines, start=1) if "max_ratio" in line]
    assert lines[after].strip().startswith(words)
    load(read_all(project_files()))


def test_a_limit_of_the_length_ratio_keeps_nearly_all_pairs():
    write([("كلمة " * (3 if number % 10 else 1), f"a b {number}") for number in range(600)])
    main(["new-corpus", "talks", "--files", "mine.ar", "mine.en"])
    assert load(read_all(project_files())).corpora["talks"].text.max_ratio == 3
    text = Path("config/talks.yaml").read_text(encoding="utf-8")
    assert "1.5 drops 10.0%, 2 drops 10.0%, 3 drops 0.0%" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("demo --files mine.ar mine.en", "demo: the project has this name already; take another"),
        ("train --files mine.ar mine.en", "train: the project has this name already; take another"),
        ("all --files mine.ar mine.en", "all: the project has this name already; take another"),
        ("download --files mine.ar mine.en", "download: the project has this name already; take another"),
        ("tables --files mine.ar mine.en", "tables: the project has this name already; take another"),
        ("logs --files mine.ar mine.en", "config/logs.yaml, line 5: corpora.logs: a folder has this name"),
        ("null --files mine.ar mine.en", "config/null.yaml, line 4: corpora: a key must be text; put it in quo"),
        ("taken --files mine.ar mine.en", "config/taken.yaml: exists already; take another name than 'taken'"),
        ("talks --files mine.ar short.en", "mine.ar has 600 lines, short.en has 499: line n of one must "),
        ("talks --files latin.ar mine.en", "latin.ar, line 2: not UTF-8 ("),
        ("talks --files short.ar short.en", "499 different pairs are too few to be split; give 500 or more"),
        ("talks --files no.ar mine.en", "no.ar: no such file"),
        ("talks --files mine.ar", "give --files SOURCE TARGET (or six files"),
        ("talks --files mine.ar mine.en --tsv mine.ar", "give --files SOURCE TARGET (or six files"),
        ("talks --files mine.ar latin.txt", "latin.txt: its name does not end in a language"),
        ("talks --files mine.ar mine.ar", "give two languages"),
        ("talks --tsv mine.ar", "give two languages"),
        ("talks --tsv mine.ar --languages xx yy", "--languages: 'xx' is no code of a language in ISO 639 (given: "),
        ("talks --tsv mine.ar --languages ar en", "mine.ar, line 1: 1 columns, not 2; name the columns in"),
        ("talks --tmx mine.ar --languages ar en", "mine.ar: not TMX (syntax error"),
        ("talks --tmx fr.tmx --languages ar en", "fr.tmx: no unit has ar and en; its languages: de, fr"),
        ("talks --files empty.ar empty.en", "talks: no pairs of sentences in these files"),
        ("Talks --files mine.ar mine.en", "NAME: use lower-case letters and digits"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_corpus_is_refused_in_one_line(words, message, folder, capsys):
    Path("config/taken.yaml").write_text("# mine\n")
    Path("latin.ar").write_bytes("a\nä\n".encode("latin-1"))
    Path("latin.txt").touch()
    write(PAIRS[:499], "short")
    write([("", "")], "empty")
    Path("fr.tmx").write_text(
        '<tmx><tu><tuv lang="de"><seg>a</seg></tuv><tuv lang="fr"><seg>b</seg></tuv></tu></tmx>'
    )
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(SystemExit):
        main(["new-corpus", *words.split()])
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith(f"synmask new-corpus: {message}"), error
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")}.keys() == before.keys()


def test_an_entry_counts_only_once_the_whole_configuration_is_right_with_it(folder, monkeypatch, capsys):
    monkeypatch.setattr(new_corpus, "ENTRY", new_corpus.ENTRY.replace("seeds:", "sedes:"))
    before = {*folder.rglob("*")}
    with pytest.raises(SystemExit):
        main(["new-corpus", "talks", "--files", "mine.ar", "mine.en"])
    assert "experiments.talks.sedes: unknown key 'sedes'; did you mean 'seeds'?" in capsys.readouterr().err
    assert {*folder.rglob("*")} == before
