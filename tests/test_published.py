"""The published numbers, to the digit, and faults in a file of numbers."""

import copy
from pathlib import Path

import pytest
import yaml

from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.errors import UserError

PATH = Path(__file__).parents[1] / "workflow/published.yaml"


@pytest.fixture(scope="module")
def published():
    return read_published(PATH)


@pytest.mark.parametrize(
    ("corpus", "column", "metric", "system", "text", "measured"),
    [
        ("iwslt14", "de-en", "bleu_tokenised", "transformer", "34.71 ± 0.12", True),
        ("iwslt14", "en-de", "bleu_tokenised", "grammar", "29.31 ± 0.13", True),
        ("iwslt14", "en-de", "bleu_tokenised", "pascal", "29.10", True),
        ("iwslt14", "de-en", "bleu_tokenised", "structformer", "32.78", True),
        ("iwslt14", "de-en", "bleu_tokenised", "lpsi", "35.05", False),
        ("iwslt14", "de-en", "bleu_tokenised", "grammar-nomlm", "34.41", True),
        ("nc11", "en-de", "bleu_tokenised", "grammar-nobpe", "25.27 ± 0.63", True),
        ("nc11", "de-en", "bleu_tokenised", "distance", "27.67", False),
        ("nc11", "en-de", "bleu_tokenised", "lisa", "25.30", False),
        ("aspec", "zh-ja", "bleu_tokenised", "grammar", "48.86 ± 0.14", True),
        ("aspec", "ja-zh", "bleu_tokenised", "grammar-nobpe", "34.70 ± 0.12", True),
        ("iwslt14", "en-de", "f1", "grammar", "31.30", True),
        ("iwslt14", "de-en", "precision", "grammar-nobpe", "34.13", True),  # printed as recall
        ("iwslt14", "en-de", "recall", "grammar-nobpe", "25.63", True),  # printed as precision
        ("glue", "MNLI-mm", "glue", "roberta-grammar", "87.5", True),
        ("glue", "average", "glue", "roberta-grammar-mlm", "85.8", True),
        ("glue", "RTE", "glue", "syntax-roberta", "81.2", False),
        ("glue", "STS-B", "glue", "synclm", "90.8", False),
    ],
)
def test_numbers(published, corpus, column, metric, system, text, measured):
    number = published.numbers[corpus, column, metric, system]
    assert (number.text, number.measured, number.paper) == (text, measured, "kai2024")
    assert number.mean == float(text.split()[0])


def test_what_the_paper_does_not_have_is_not_there(published):
    for key in (
        ("iwslt14", "en-de", "bleu_tokenised", "lpsi"),
        ("aspec", "ja-zh", "bleu_tokenised", "distance"),
        ("glue", "MNLI-m", "glue", "sla"),
        ("glue", "average", "glue", "synclm"),
    ):
        assert key not in published.numbers


def test_each_note_is_reported_once_and_only_of_its_own_numbers(published):
    cost = published.notes({(corpus, "parameters", "grammar") for corpus in ("iwslt14", "nc11", "aspec")})
    assert len(cost) == 1
    assert "9M" in cost[0]
    assert "135M parameters, 10M of them" in cost[0]
    assert "7 hours for GLUE" in cost[0]
    bleu = {("nc11", "bleu_tokenised", system) for system in ("transformer", "grammar", "grammar-nobpe")}
    assert published.notes(bleu) == []
    (nomlm,) = published.notes({*bleu, ("nc11", "bleu_tokenised", "grammar-nomlm")})
    assert "still masks 15%" in nomlm
    (scale,) = published.notes({*bleu, ("nc11", "bleu_tokenised", "lisa")})
    assert scale.startswith("The published numbers of PASCAL and LISA on NC11 may be sacreBLEU")


def test_the_averages_are_those_of_the_nine_columns(published):
    *tasks, average = published.columns("glue")
    for system in ("roberta", "roberta-grammar", "roberta-grammar-mlm", "syntax-roberta"):
        scores = [published.numbers["glue", task, "glue", system].mean for task in tasks]
        expected = published.numbers["glue", average, "glue", system].mean
        assert sum(scores) / 9 == pytest.approx(expected, abs=0.05)


def test_f1_follows_from_precision_and_recall(published):
    for system in ("grammar", "grammar-nobpe"):
        for direction in ("de-en", "en-de"):
            p, r, f1 = (
                published.numbers["iwslt14", direction, m, system].mean for m in ("precision", "recall", "f1")
            )
            assert 2 * p * r / (p + r) == pytest.approx(f1, abs=0.011)


def test_papers_in_short(published):
    assert published.cite("bugliarello2020") == "Bugliarello and Okazaki 2020"


def first(values):
    return values["results"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: first(v)["measured"].update(grammar=["35.89"]), "results.0: grammar: 1 numbers for 2 columns"),
        (lambda v: first(v)["measured"].update(grammar=["35,89", None]), "results.0.measured.grammar.0: must be a printed number in quotes"),
        (lambda v: first(v)["measured"].update(grammar=[35.9, None]), "results.0.measured.grammar.0: must be text (given: 35.9)"),
        (lambda v: first(v)["measured"].update(lisa=["1.0", None]), "lisa: bleu_tokenised on iwslt14 de-en is given twice"),
        (lambda v: first(v)["measured"].update(nobody=["1.0", None]), "no system 'nobody' among the systems"),
        (lambda v: first(v).update(paper="kai"), "no paper 'kai' among the papers"),
        (lambda v: first(v).update(metric="bleu"), "results.0.metric"),
        (lambda v: first(v).update(mesured={}), "results.0.mesured: unknown key 'mesured'; did you mean 'measured'?"),
        (lambda v: v["papers"].update(kai2024="Kai"), "papers.kai2024: must be authors, a year"),
    ],
)  # fmt: skip
def test_faults_are_one_line(tmp_path, change, message):
    values = copy.deepcopy(read_yaml(PATH))
    change(values)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(values, allow_unicode=True))
    with pytest.raises(UserError) as error:
        read_published(path)
    assert str(error.value).startswith(f"{path}")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
