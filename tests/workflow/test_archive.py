"""A corpus from its publisher's archive to binary data: fetched first, then offline."""

import io
import tarfile

SETS = ["TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"]


def write_archive(path, pairs):
    """An archive like IWSLT14's, with so many training pairs and a segment in each test file."""
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as tar:
        for language, word in (("de", "Satz"), ("en", "Sentence")):
            train = "".join(f"{word} {number % 7} ist da .\n" for number in range(pairs))
            files = {f"train.tags.de-en.{language}": f"<url>x</url>\n{train}"}
            for name in SETS:
                files[f"IWSLT14.{name}.de-en.{language}.xml"] = f'<seg id="1"> {word} {name} </seg>\n'
            for name, text in files.items():
                info = tarfile.TarInfo(f"de-en/{name}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))


def test_from_the_archive_to_binary_data(project):
    write_archive(project.folder / "mirror/de-en.tgz", pairs=50)
    corpus = project.config["corpora"]["iwslt14"]
    corpus.update(bpe={"merges": 20}, pairs={"train": 48, "valid": 2, "test": 5})
    project.config.update(mirrors={"iwslt14": "mirror"}, targets=["iwslt14"])
    project.snakemake("download")
    assert sorted(path.name for path in (project.folder / "data/iwslt14").iterdir()) == [
        "de-en.tgz",
        "de-en.tgz.sha256",
    ]
    (project.folder / "mirror").rename(project.folder / "gone")  # from here on nothing is fetched
    project.snakemake("-c2", "results/iwslt14/de-en/bin/dict.de.txt", "results/iwslt14/de-en/text/test.en")
    folder = project.folder / "results/iwslt14/de-en"
    clean, tokens = (folder / f"{stage}/train.de" for stage in ("clean", "tokens"))
    assert clean.read_text() == tokens.read_text()
    assert clean.read_text().count("\n") == 48
    assert (folder / "tokens/valid.de").read_text() == "satz 1 ist da .\nsatz 3 ist da .\n"
    assert (folder / "text/test.en").read_text().startswith("Sentence TED.dev2010\nSentence TEDX.dev2012\n")

    corpus["pairs"]["valid"] = 7283
    done = project.snakemake("results/iwslt14/de-en/text/valid.de", check=False)
    assert done.returncode == 1
    assert "\nsynmask prepare: iwslt14: valid has 2 pairs, not 7,283; " in done.output


def test_test_sets_are_joined_and_scored_apart(project):
    for split in ("train", "valid", "news", "talks"):
        for language in ("de", "en"):
            (project.folder / f"{split}.{language}").write_text("a\n")
    files = {split: f"{split}.{{language}}" for split in ("train", "valid", "news", "talks")}
    single = {"languages": ["de", "en"], "files": {**files, "test": files["news"]}}
    del single["files"]["news"], single["files"]["talks"]
    sets = {"files": {"test": {name: files[name] for name in ("news", "talks")}}}
    project.config["corpora"] |= {"single": single, "sets": {"based_on": "single", **sets}}
    for corpus, joined, scored in (
        ("single", "--source-in train.de valid.de news.de --target-in train.en valid.en news.en ", ""),
        (
            "sets",
            "--source-in train.de valid.de news.de talks.de --target-in train.en valid.en news.en talks.en ",
            "--sets news talks --set-files news.en talks.en ",
        ),
    ):
        printed = project.snakemake("-np", f"results/{corpus}/de-en/transformer/seed1/scores.json").output
        assert joined in printed
        assert scored in printed
        assert ("--set" in printed.replace("--settings", "")) == bool(scored)
