import copy
import os
import re
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from synmask.pipeline import runs
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.schema import Config, as_json
from synmask.pipeline.config.sections import Corpus, SentencePiece, Text
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.errors import UserError
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.languages import LANGUAGE, split_direction
from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.workflow.jobs import Jobs

ROOT = Path(__file__).parents[1]
FILES = project_files(ROOT)


@pytest.fixture
def values():
    return copy.deepcopy(read_all(FILES))


def refused(values):
    with pytest.raises(UserError) as error:
        load(values)
    assert re.match(r"(--config|\S+\.yaml(, line \d+)?): \S.*", str(error.value)), str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_papers_settings(values):
    config = load(values)
    iwslt = config.run_settings("iwslt14", "de-en", "grammar").plain()
    assert iwslt["model"] == {
        "encoder_layers": 6, "decoder_layers": 6, "embed_dim": 512, "ffn_dim": 1024, "heads": 4,
    }  # fmt: skip
    assert iwslt["training"]["lr"] == 5e-4
    assert iwslt["training"]["batch"] == {"gpus": 2, "updates": 1, "tokens": 4096}
    assert iwslt["training"]["max_epochs"] == 60
    assert iwslt["system"]["mlm_weight"] == 0.47
    nc11 = config.run_settings("nc11", "en-de", "grammar").plain()
    assert (nc11["training"]["lr"], nc11["system"]["mlm_weight"]) == (1e-3, 0.35)
    assert nc11["training"]["batch"] == {"gpus": 2, "updates": 2, "tokens": 8192}
    weights = [
        config.run_settings("aspec", d, "grammar").plain()["system"]["mlm_weight"] for d in ("zh-ja", "ja-zh")
    ]
    assert weights == [0.30, 0.45]
    assert config.corpora["aspec"].bpe.vocabulary_threshold == 10
    assert (config.corpora["nc11"].decoding.beam, config.corpora["nc11"].decoding.length_penalty) == (4, 0.6)


def test_the_other_papers_options(values):
    config = load(values)

    def options(corpus, direction, system):
        return config.run_settings(corpus, direction, system).plain()["system"]["options"]

    assert options("nc11", "de-en", "pascal") == {"heads": None, "sigma": 1.0, "ignore": 0.0}
    assert options("nc11", "en-de", "pascal") == {"heads": 2, "sigma": 1.0, "ignore": 0.4}
    assert [options("iwslt14", d, "distance")["heads"] for d in ("de-en", "en-de")] == [None, 3]
    assert options("aspec", "zh-ja", "distance") == {"heads": 2, "temperature": 10.0}
    assert options("demo", "de-en", "lpsi-sync")["sync_weight"] == 0.005


def test_every_experiments_runs_have_settings(values):
    config = load(values)
    for experiment in config.plain_experiments.values():
        for direction in experiment.directions:
            for system in experiment.systems:
                config.run_settings(experiment.corpus, direction, system)


def test_a_based_on_corpus_inherits_what_it_does_not_say(values):
    config = load(values)
    small, large = config.corpora["multi30k-small"], config.corpora["multi30k"]
    assert small.sha256 == large.sha256
    assert small.text == large.text
    assert small.download == "multi30k"
    assert small.bpe.merges != large.bpe.merges
    assert small.training.mlm_weight == large.training.mlm_weight


def test_the_languages_of_a_direction():
    assert split_direction("de-en") == ("de", "en")
    assert split_direction("pt-BR-zh_TW") == ("pt-BR", "zh_TW")
    assert split_direction("en-sr-Latn-RS") == ("en", "sr-Latn-RS")
    assert re.fullmatch(f"({LANGUAGE})-({LANGUAGE})/", "zh-Hant-es-419/").groups() == ("zh-Hant", "es-419")


def test_a_corpus_keeps_its_codes_and_gets_their_languages_tools(values):
    values["corpora"]["mine"] = {
        "languages": ["deu", "en-GB"],
        "files": {split: f"{split}.{{language}}" for split in ("train", "valid", "test")},
        "trees": "corenlp",
    }
    values["experiments"]["mine"] = {
        "title": "Mine", "corpus": "mine", "directions": ["deu-en-GB"], "systems": ["transformer", "grammar", "pascal"],
        "tables": ["translation", "parsing"],
    }  # fmt: skip
    config = load(values)
    files = DataFiles(config)
    assert files.raw_files("mine", "train", "en-GB")[0] == "train.en-GB"
    assert files.parses("mine", "train", "deu")["trees"] == "results/mine/deu-en-GB/syntax/train.deu.trees"
    assert files.corenlp_jars("deu") == files.corenlp_jars("de") != files.corenlp_jars("en-GB")
    assert files.corenlp_settings("en-GB") == files.corenlp_settings("en")


@pytest.mark.parametrize(
    "changes",
    [{"languages": ["de", "en"]}, {"files": {"test": "test_2017_flickr.{language}.gz"}}],
)
def test_a_based_on_corpus_may_have_other_files_of_the_same_source(values, changes):
    values["corpora"]["mine"] = {"based_on": "multi30k", **changes}
    config = load(merge(values, {}))
    assert config.corpora["mine"].download == "multi30k"
    assert (
        DataFiles(config).origin("multi30k", "train.de.gz")[1]
        == config.corpora["multi30k"].sha256["train.de.gz"]
    )


def test_a_based_on_corpus_gives_the_checksums_of_its_own_files(values):
    name = "test_2017_flickr.de.gz"
    options = {"files": {"test": "test_2017_flickr.{language}.gz"}, "sha256": {name: "0" * 64}}
    values["corpora"]["mine"] = {"based_on": "multi30k", **options}
    url, checksum = DataFiles(load(values)).origin("multi30k", name)
    assert url.endswith(f"/{name}")
    assert checksum == "0" * 64


def test_a_based_on_corpus_may_have_several_test_sets(values):
    sets = {"old": "test_2016_flickr.{language}.gz", "new": "test_2017_flickr.{language}.gz"}
    values["corpora"]["mine"] = {"based_on": "multi30k", "files": {"test": sets}}
    values["corpora"]["less"] = {
        "based_on": "mine",
        "files": {"test": {"new": sets["new"]}},
        "pairs": {"test": 7},
    }
    config = load(values)
    files = DataFiles(config)
    mine, less = config.corpora["mine"], config.corpora["less"]
    assert (mine.test_sets, less.test_sets) == (["old", "new"], ["new"])
    assert config.corpora["multi30k"].test_sets == []
    assert mine.pairs == {"train": 29000, "valid": 1014}  # the base's number is not that of these files
    assert less.pairs == {**mine.pairs, "test": 7}
    paths = [f"data/multi30k/test_{year}_flickr.de.gz" for year in (2016, 2017)]
    assert files.raw_files("mine", "test", "de") == paths
    assert files.corpus_sources("mine", ["de"])[-2:] == paths
    assert files.raw_files("mine", "valid", "de") == ["data/multi30k/val.de.gz"]


SPLITS = ("train", "valid", "test")
OWN = {"files": {split: f"mine/{split}.{{language}}" for split in SPLITS}}


@pytest.mark.parametrize("base", ["multi30k", "multi30k-small", "iwslt14", "demo"])
def test_a_based_on_corpus_with_a_text_of_its_own_has_nothing_of_the_other_text(values, base):
    values["corpora"][base]["sentence"] = 7
    values["corpora"]["mine"] = {"based_on": base, "languages": ["de", "en"], **OWN}
    config = load(values)
    mine, other = config.corpora["mine"], config.corpora[base]
    assert (mine.text, other.text == mine.text) == (Text(tokeniser="moses"), False)
    assert (mine.url, mine.sha256, mine.pairs, mine.sentence, mine.download) == (None, {}, {}, None, "mine")
    assert DataFiles(config).raw_files("mine", "train", "de") == ["mine/train.de"]
    assert (mine.model, mine.training, mine.bpe) == (other.model, other.training, other.bpe)
    assert mine.trees == ("corenlp" if other.trees == "corenlp" else {})  # how to parse, not a file
    assert mine.heads == {}


def test_a_corpus_that_corenlp_parses_takes_no_heads_of_its_base(values):
    values["corpora"]["mine"] = {"based_on": "demo", "trees": "corenlp"}
    assert load(values).corpora["mine"].heads == {}


def test_a_group_may_have_what_a_target_may(values):
    values["experiments"]["mine"] = values["targets"] = ["demo", "demo-cost", "glue-rte"]
    assert runs.parts(load(values), "mine")[1] == ["demo-cost", "glue-rte"]


def test_a_based_on_corpus_does_not_take_trees_of_another_text(values):
    values["corpora"]["multi30k"]["trees"] = {"valid": "gold/v.{language}", "test": "gold/t.{language}"}
    options = {"files": {"test": "test_2017_flickr.{language}.gz"}}
    values["corpora"] |= {
        "other": {"based_on": "multi30k", **options},
        "mine": {"based_on": "multi30k", **OWN},
    }
    values["experiments"] = {"demo": values["experiments"]["demo"]}
    values["tables"] = {}
    config = load(values)
    assert config.corpora["other"].trees == {"valid": "gold/v.{language}"}
    assert config.corpora["mine"].trees == {}


def test_a_based_on_corpus_from_elsewhere_leaves_its_base_alone(values):
    before = DataFiles(load(values)).origin("multi30k", "train.de.gz")
    values["corpora"] = {
        "mine": {"based_on": "multi30k", "url": "https://example.org/x"},
        **values["corpora"],
    }
    config = load(values)
    files = DataFiles(config)
    assert files.origin("multi30k", "train.de.gz") == before
    assert files.origin("mine", "train.de.gz") == ("https://example.org/x/train.de.gz", None)
    assert files.raw_files("mine", "train", "de") == ["data/mine/train.de.gz"]


def test_a_table_shows_trees_or_translations(values):
    table = {"title": "T", "experiments": ["demo"], "systems": ["grammar", "grammar-nobpe"]}
    values["tables"]["mine"] = table | {"metrics": ["sacrebleu", "f1"]}
    message = "tables.mine: some metrics are of trees, others not; make a table of each"
    assert message in refused(values)


def test_downloaded_files_have_no_folders(values):
    values["corpora"]["multi30k"]["files"]["train"] = "a/train.{language}.gz"
    assert (
        "corpora.multi30k: files.train: 'a/train.{language}.gz' has a folder in it; it belongs to `url`"
        in refused(values)
    )


def test_settings_hold_nothing_that_does_not_change_a_training(values):
    before = load(values)
    values["systems"]["grammar"]["label"] = "another"
    values["corpora"]["demo"]["resources"]["threads"] = 7
    values["corpora"]["demo"]["training"]["average"] = 2
    values["corpora"]["demo"]["decoding"] = {"beam": 2}
    values["corpora"]["demo"]["training"]["mlm_weight"] = 0.9
    after = load(values)

    def same(system):
        run = ("demo", "de-en", system)
        return as_json(after.run_settings(*run)) == as_json(before.run_settings(*run))

    assert same("transformer")
    assert not same("grammar")  # its lambda is the corpus'


def test_a_systems_own_training_is_laid_over_the_corpus(values):
    def training(system):
        return load(values).run_settings("nc11", "de-en", system).plain()["training"]

    before = training("transformer")
    assert training("transformer-tuned") == before | {"attention_dropout": 0.2, "checkpoint": "best"}
    assert "checkpoint" not in before  # so that older runs keep their settings
    values["systems"]["transformer"]["training"] = {"batch": {"tokens": 100}, "checkpoint": "average"}
    assert training("transformer") == before | {"batch": before["batch"] | {"tokens": 100}}
    assert load(values).training_of("nc11", "transformer").kept == 5
    assert load(values).training_of("nc11", "transformer-tuned").kept == 1


def test_a_systems_sizes_lie_over_its_corpus(values):
    values["systems"]["transformer-wide-small"]["model"] = {"ffn_dim": 300}
    config = load(values)
    small, wide = (
        config.run_settings("multi30k-small", "de-en", system).plain()["model"]
        for system in ("transformer", "transformer-wide-small")
    )
    assert wide == small | {"ffn_dim": 300}
    values["systems"]["transformer-wide-small"]["model"] = {"width": 300}
    with pytest.raises(
        UserError, match=r"systems\.transformer-wide-small\.model\.width: unknown key 'width'"
    ):
        load(values)


def test_the_wider_transformer_has_as_many_parameters_as_the_grammar():
    """studies/multi30k/README.md: the control of `grammar` on Multi30k."""
    config = load(read_all(FILES))
    small = config.model_of("multi30k-small", "transformer")
    wide = config.model_of("multi30k-small", "transformer-wide-small")
    layers = small.encoder_layers + small.decoder_layers
    difference = layers * (wide.ffn_dim - small.ffn_dim) * (2 * small.embed_dim + 1)
    assert difference == pytest.approx(8_307_908 - 6_005_760, rel=0.002)


def test_what_is_predicted_does_not_depend_on_how_it_is_read(values):
    run, names = ("demo", "de-en", "st-nmt"), ("run_settings", "template_settings", "template_cut")
    before = load(values)
    plain = before.run_settings("demo", "de-en", "transformer")
    assert as_json(before.template_settings(*run)) == as_json(plain)
    assert before.template_cut(*run) == {"ratio": 0.15, "least": 3, "most": 6}
    for options, changed in (({"without": 0.1}, {names[0]}), ({"least": 2}, {names[0], names[2]})):
        values["corpora"]["demo"]["options"] = {"st-nmt": {"de-en": options}}
        after = load(values)
        assert {
            name for name in names if getattr(after, name)(*run) != getattr(before, name)(*run)
        } == changed


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda v: v["systems"]["distance-tuned"]["training"].update(dropuot=0), "systems.distance-tuned.training.dropuot: unknown key 'dropuot'; did you mean 'dropout'?"),
        (lambda v: v["systems"]["grammar-tuned"].update(training={"mlm_weight": 0.1}), "systems.grammar-tuned.training.mlm_weight: unknown key 'mlm_weight'"),
        (lambda v: v["systems"]["roberta"].update(training={"lr": 1}), "tables.glue.systems: system 'roberta' has `training`, which fine-tuning does not read; leave it out"),
        (lambda v: v["systems"]["roberta-mlm"].update(left_pad_source=True), "systems: system 'roberta-mlm' has `left_pad_source`, which fine-tuning does not read; leave it out"),
        (lambda v: v["training"].update(checkpoint="last"), "training.checkpoint: must be 'average', 'best' or 'best-bleu' (given: 'last')"),
        (lambda v: v["systems"]["grammar"]["options"].update(bpe_dims=2), "systems.grammar.options.bpe_dims: unknown key 'bpe_dims'; did you mean 'bpe_dim'?"),
        (lambda v: v["systems"]["grammar"]["options"].update(bpe="ad"), "systems.grammar.options.bpe: must be 'none', 'add' or 'concatenate' (given: 'ad'); did you mean 'add'?"),
        (lambda v: v["tables"]["mlm"].update(metrics=["sacreblue"]), "tables.mlm.metrics.0: must be 'bleu_tokenised', 'sacrebleu', 'chrf', 'ter', 'valid_bleu_tokenised', 'valid_sacrebleu', 'valid_chrf', 'precision', 'recall', 'f1', 'sentence_f1', 'parameters', 'tokens_per_second', 'device_hours', 'memory' or 'glue' or a function of yours by its dotted name, such as mine.length (given: 'sacreblue'); did you mean 'sacrebleu'?"),
        (lambda v: v["tables"]["mlm"].update(metrics=["chrf", "no_such.f"]), "tables.mlm.metrics.1: no_such.f: no module 'no_such', neither in this folder nor installed"),
        (lambda v: v["tables"]["mlm"].update(metrics="chrf"), "tables.mlm.metrics: must be a list (given: 'chrf')"),
        (lambda v: v["systems"].update(x={"options": {"bpe": "add"}}), "--config: systems.x.options: options need a guide"),
        (lambda v: v["systems"]["pascal"].update(guide="pascla"), "systems.pascal.guide: unknown guide 'pascla'; did you mean 'pascal'?"),
        (lambda v: v["systems"]["pascal"]["options"].update(sigma=0), "systems.pascal.options.sigma: must be above 0 (given: 0)"),
        (lambda v: v["systems"]["grammar"]["options"].update(relations=["child", "child"]), "systems.grammar.options: relations must be one or two different ones"),
        (lambda v: v["corenlp"]["languages"].update({False: {}}), "corenlp.languages: a key must be text; put it in quotes (given: false)"),
        (lambda v: v["systems"]["lisa"]["options"].update(heads=1), "systems.lisa.options.heads: unknown key 'heads'"),
        (lambda v: v["corpora"]["nc11"]["options"]["pascal"]["en-de"].update(head=1), "corpora.nc11.options.pascal.en-de.head: unknown key 'head'; did you mean 'heads'?"),
        (lambda v: v["corpora"]["nc11"]["options"].update(pascl={}), "corpora.nc11.options.pascl: unknown system 'pascl'; did you mean 'pascal'?"),
        (lambda v: v["systems"]["distance"]["options"].update(heads=5), "experiments.demo-all.systems: system 'distance' on corpus 'demo': guides 5 heads, the model has 4"),
        (lambda v: v["systems"]["grammar"]["options"].update(layers=3), "experiments.demo.systems: system 'grammar' on corpus 'demo': guides 3 layers, the model has 2"),
        (lambda v: v["systems"]["transformer-tuned"]["training"].update(checkpoint="average", max_epochs=2), "systems.transformer-tuned.training.average: system 'transformer-tuned' on corpus 'iwslt14': 5 epochs to average, but only 2 trained"),
        (lambda v: v["corpora"]["demo"]["training"].update(average=99), "corpora.demo.training.average: system 'transformer' on corpus 'demo': 99 epochs to average"),
        (lambda v: v["corpora"]["aspec"]["training"]["mlm_weight"].pop("zh-ja"), "corpora.aspec.training.mlm_weight: system 'transformer-mlm' on corpus 'aspec': no value for zh-ja"),
        (lambda v: v["experiments"]["aspec"]["systems"].append("pascal"), "systems: system 'pascal' reads heads of a parser; corpus 'aspec' has no heads of ja, leave it out"),
        (lambda v: v["experiments"]["aspec-parsed"].update(systems=["transformer", "grammar", "st-nmt"]), "systems: system 'st-nmt' reads templates of the target; corpus 'aspec' has no trees of ja, leave it out"),
        (lambda v: v["systems"]["st-nmt"]["options"].update(least=7), "systems.st-nmt.options: least must not be above most"),
        (lambda v: v["tables"]["nlu-demo"]["systems"].append("st-nmt"), "system 'st-nmt' cannot be a RoBERTa"),
        (lambda v: v["systems"].update(x={"mlm_weight": 0.2}), "--config: systems.x: mlm_weight needs a mask_rate above 0"),
        (lambda v: v["systems"].update({"x; rm -rf ~": {}}), "--config: systems.x; rm -rf ~: use lower-case letters"),
        *(
            (lambda v, section=section: v[section].update({"../x": v[section]["demo"]}), f"--config: {section}.../x: use lower-case letters and digits")
            for section in ("corpora", "experiments")
        ),
        (lambda v: v["experiments"]["demo"].update(directions=["de-en; touch a"]), "experiments.demo.directions.0: must be two language codes"),
        (lambda v: v.update(targets=["x; touch a"]), "targets.0: use lower-case letters"),
        (lambda v: v["experiments"]["demo"].update(title="a\nb"), "experiments.demo.title: a line break or another character"),
        (lambda v: v["systems"]["grammar"].update(label="a\x1b[31m"), "systems.grammar.label: a line break or another character"),
        (lambda v: v.update(data_dir="a\nb"), "data_dir: a line break or another character"),
        (lambda v: v.update(data_dir="data/{corpus}"), "data_dir: no braces in a path but {language}"),
        (lambda v: v["corpora"]["demo"]["model"].update(heads=3), "corpora.demo.model: embed_dim 128 is not a multiple of heads 3"),
        (lambda v: v["corpora"]["multi30k-small"].update(based_on="multi"), "corpora.multi30k-small.based_on: unknown corpus 'multi'; did you mean 'multi30k'?"),
        (lambda v: v["corpora"]["multi30k"].update(based_on="multi30k-small"), "based_on: 'multi30k' is itself based on 'multi30k-small'; break the circle"),
        (lambda v: v["corpora"]["multi30k"]["files"].pop("test"), "corpora.multi30k: files: no entry for test"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(test="x"), "corpora.multi30k: files.test: 'x' has no {language} in it"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(test={"a": "x.{language}", "b": "x"}), "corpora.multi30k: files.test: 'x' has no {language} in it"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(test={"a": "x.{language}", "b": "x.{language}"}), "corpora.multi30k: 'x.{language}' is given twice"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(test={"a": "y/x.{language}"}), "corpora.multi30k: files.test: 'y/x.{language}' has a folder in it"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(test={}), "corpora.multi30k: files.test: give one file"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(test={"A b": "x.{language}"}), "corpora.multi30k.files.test.A b: use lower-case letters"),
        (lambda v: v["corpora"]["multi30k"]["files"].update(valid={"a": "x.{language}"}), "corpora.multi30k: files.valid: give one file; only `test` may have several, named"),
        (lambda v: v["corpora"]["iwslt14"].update(files={}), "corpora.iwslt14: give one of `files` and `format`"),
        (lambda v: v["corpora"]["iwslt14"].pop("archives"), "corpora.iwslt14: `format` and `archives` go together"),
        (lambda v: v["corpora"]["iwslt14"].update(archives=["../x.tgz"]), "corpora.iwslt14.archives.0: must be a file name"),
        (lambda v: v["corpora"]["iwslt14"].update(pairs={"dev": 3}), "corpora.iwslt14.pairs.dev"),
        (lambda v: v["corpora"]["iwslt14"].update(pairs={"train": [5, 3]}), "pairs.train: 5 is above 3; give [least, most]"),
        (lambda v: v["corpora"]["aspec"]["text"].update(tokeniser={"zh": "stanford"}), "corpora.aspec: text.tokeniser: give one for each of zh, ja, and no others"),
        (lambda v: v["corpora"]["aspec"]["text"].update(tokeniser="mekab"), "corpora.aspec.text.tokeniser"),
        (lambda v: v["corpora"]["aspec"]["text"].update(tokeniser="mecab"), "corpora.aspec: text.tokeniser: mecab is for ja, not for zh"),
        (lambda v: v["corpora"]["multi30k"]["text"].update(tokeniser="icu"), "text.tokeniser: icu is for scripts without spaces, not for de; give moses"),
        (lambda v: v["corpora"]["nc11"]["text"].update(tokeniser={"de": "moses", "en": "sentencepiece"}), "text.tokeniser: sentencepiece makes no words, over which this corpus has trees; give another, and beside it `sentencepiece: {}`"),
        (lambda v: v["corpora"]["demo"].update(text={"tokeniser": "sentencepiece"}), "corpora.demo: text.tokeniser: sentencepiece makes no words, over which"),
        (lambda v: v["corpora"]["multi30k-small"].update(sentencepiece={}), "system 'st-nmt' reads templates, which are made of BPE; corpus 'multi30k-small' has sentencepiece, leave it out"),
        (lambda v: v["corpora"]["nc11"].update(sentencepiece={"vocab_sizes": 5}), "corpora.nc11.sentencepiece.vocab_sizes: unknown key 'vocab_sizes'; did you mean 'vocab_size'?"),
        (lambda v: v["corpora"]["nc11"].update(sentencepiece={"character_coverage": 0.9}), "corpora.nc11.sentencepiece.character_coverage"),
        (lambda v: v["benchmarks"]["glue"]["tasks"].update(wnli=v["benchmarks"]["glue"]["tasks"]["rte"]), "benchmarks.glue.tasks.wnli: unknown task 'wnli'"),
        (lambda v: v["benchmarks"]["glue"]["tasks"]["rte"]["rows"].update(valid=3), "benchmarks.glue.tasks.rte.rows.valid"),
        (lambda v: v["benchmarks"]["glue"]["tasks"]["rte"].update(lrr=3), "benchmarks.glue.tasks.rte.lrr: unknown key 'lrr'; did you mean 'lr'?"),
        (lambda v: v["benchmarks"]["glue"]["tasks"]["rte"].pop("urls"), "benchmarks.glue.tasks.rte: give `urls`, or the benchmark's `folder`"),
        (lambda v: v["benchmarks"]["glue"]["tasks"]["rte"]["rows"].pop("train"), "benchmarks.glue.tasks.rte.rows"),
        (lambda v: v["benchmarks"]["glue"].update(weights="roberta-bas"), "benchmarks.glue.weights: unknown weights 'roberta-bas'; did you mean 'roberta-base'?"),
        (lambda v: v["benchmarks"].update(demo=v["benchmarks"]["glue"]), "benchmarks.demo: weights, a corpus or a benchmark has this name"),
        (lambda v: v["benchmarks"]["nlu-demo"].update(folder=None), "benchmarks.nlu-demo: parsed: name the `folder` with the parses"),
        (lambda v: v["benchmarks"]["nlu-demo"].update(folder=None, parsed=False), "benchmarks.nlu-demo.tasks.acceptability: give `urls`, or the benchmark's `folder`"),
        (lambda v: v["weights"]["roberta-base"].update(huggingface="x"), "weights.roberta-base: give one of `url`, `huggingface`, `pretrain` and `continued`"),
        (lambda v: v["weights"]["roberta-demo-synclm"]["continued"].update(weights="roberta-demo-continued"), "weights.roberta-demo-synclm.continued.weights: weights 'roberta-demo-continued' are `continued` themselves"),
        (lambda v: v["benchmarks"]["nlu-demo"]["weights_of"].update(synclm="roberta-base-synclm"), "tables.nlu-demo-all.systems: system 'synclm' starts from 'roberta-base-synclm', which does not continue 'roberta-demo'"),
        (lambda v: v["weights"]["roberta-demo"]["pretrain"]["model"].update(heads=5), "weights.roberta-demo.pretrain.model: embed_dim 96 is not a multiple of heads 5"),
        (lambda v: v["corpora"]["aspec"]["training"].update(mlm_weight={"zh-ja": 0.3, "jazh": 1}), "corpora.aspec.training.mlm_weight"),
        (lambda v: v["experiments"]["demo"].update(directions=["de-fr"]), "experiments.demo.directions: unknown language 'fr'"),
        (lambda v: v["corpora"]["aspec"].update(languages=["zh", "jp"]), "corpora.aspec.languages.1: 'jp' is a country's code, not a language's; for Japanese write ja"),
        (lambda v: v["corpora"]["aspec"].update(languages=["zh", "Ja"]), "corpora.aspec.languages.1: must be a language code of two or three lower-case letters"),
        (lambda v: v["experiments"]["demo"].update(directions=["de-de"]), "experiments.demo.directions.0: from de to de: give two languages (given: 'de-de')"),
        (lambda v: v["experiments"]["aspec"].update(tables=["parsing"]), "tables: corpus 'aspec' has no `trees` of ja; give it some, or leave 'parsing' out"),
        (lambda v: v["experiments"]["multi30k"].update(directions=["de-en", "fr-en"]), "tables: corpus 'multi30k' has no `trees` of fr; give it some, or leave 'parsing' out"),
        (lambda v: v["corpora"]["nc11"].update(trees="stanford"), "corpora.nc11.trees: must be 'corenlp' or keys and values"),
        (lambda v: v["corpora"]["nc11"].update(trees={"vald": "x"}), "corpora.nc11.trees"),
        (lambda v: v["corpora"]["nc11"].update(heads={"valid": "x.{language}"}), "corpora.nc11: `trees: corenlp` makes `heads`, too; leave them out"),
        (lambda v: v["corpora"]["demo"]["heads"].pop("test"), "experiments.demo-all.systems: system 'pascal' reads heads of a parser; corpus 'demo' has no heads of de, leave it out"),
        (lambda v: v["corpora"]["demo"]["trees"].pop("train"), "experiments.demo-all.systems: system 'st-nmt' reads templates of the target; corpus 'demo' has no trees of en, leave it out"),
        (lambda v: v["corenlp"]["jars"].update({"x:y": "0" * 64}), "corenlp.jars.x:y"),
        (lambda v: v["corenlp"]["languages"]["de"].update(parsr="x"), "corenlp.languages.de.parsr: unknown key 'parsr'; did you mean 'parser'?"),
        (lambda v: v["experiments"]["demo"].update(systems=["transformer"]), "experiments.demo.tables: no system here induces trees; leave 'parsing' out"),
        (lambda v: v["experiments"]["demo"].update(seeds=[]), "experiments.demo.seeds"),
        (lambda v: v["experiments"]["paper"].append("sweeps"), "experiments.paper: 'sweeps' is a list itself; name its experiments"),
        (lambda v: v["experiments"]["paper"].append("glue-wnli"), "experiments.paper: unknown experiment 'glue-wnli'; did you mean 'glue-"),
        (lambda v: v["experiments"]["paper"].append("demoo"), "experiments.paper: unknown experiment 'demoo'; did you mean 'demo'?"),
        (lambda v: v["resources"].update(nodes=2), "resources: nodes 2: give `gpus`, those of each node"),
        (lambda v: v.update(targets=["dem"]), "targets.0: unknown experiment 'dem'; did you mean 'demo'?"),
        (lambda v: v.update(mirrors={"multi30": "x"}), "mirrors.multi30: unknown download 'multi30'; did you mean 'multi30k'?"),
        (lambda v: v.pop("systems"), "systems: this key is missing"),
        (lambda v: v["training"].update(lr="fast"), "training.lr: must be a number (given: 'fast')"),
    ],
)  # fmt: skip
def test_faults_are_one_line_with_file_and_key(values, change, expected):
    change(values)
    message = refused(values)
    assert expected.removeprefix("--config: ") in message, message


def test_the_last_file_that_holds_the_key_is_named(values, tmp_path):
    (tmp_path / "mine.yaml").write_text("systems: {grammar: {labl: x}}\n")
    values = merge(values, read_yaml(tmp_path / "mine.yaml"))
    with pytest.raises(
        UserError, match=r"mine\.yaml, line 1: systems\.grammar\.labl: unknown key 'labl'; did you mean"
    ):
        load(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' is given twice"),
        ("a: [1\n", "line 2: not YAML"),
        ("- a\n", "expected keys and values, found a list"),
    ],
)
def test_faulty_yaml(tmp_path, text, message):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        read_yaml(tmp_path / "mine.yaml")


@pytest.mark.parametrize("code", ["ko", "kor"])
def test_a_target_that_cannot_be_scored_here(values, monkeypatch, code):
    training = {"mlm_weight": 0.3}
    values["corpora"]["mine"] = {"languages": ["de", code], "training": training, **OWN}
    experiment = {"title": "M", "corpus": "mine", "directions": [f"de-{code}"], "systems": ["grammar"]}
    values["experiments"]["mine"] = experiment
    monkeypatch.setattr("synmask.pipeline.config.sections.find_spec", lambda name: None)
    message = f"sacreBLEU lacks its tokeniser of {code}; pip install sacrebleu[ko]"
    assert f"experiments.mine.directions: {message}" in refused(values)
    monkeypatch.setattr("synmask.pipeline.config.sections.find_spec", lambda name: name)
    load(values)


def sweep(values, setting, *tried, systems=("grammar",), **kwargs):
    values["experiments"]["demo"] |= {
        "systems": [*systems],
        "sweep": {"setting": setting, "values": tried},
    } | kwargs


def test_config_yaml_shows_the_defaults_as_they_are(values):
    """It gives each default's source; the code needs them for settings that come from a command line."""
    for name in ("training", "decoding", "resources", "corenlp"):
        section = Config.model_fields[name].annotation
        shown = section.model_validate(values[name])
        for key in section.model_fields.keys() - {
            "url",
            "jars",
            "segmenter",
            "languages",
        }:  # CoreNLP's have none
            assert getattr(shown, key) == getattr(section(), key), f"{name}.{key}"


def test_a_sweep_adds_a_system_for_each_value(values):
    sweep(values, "mlm_weight", 0.1, 0.5, systems=("grammar", "grammar-mask"))
    config = load(values)
    names = ["grammar", "grammar-mask", "grammar-mlm-weight-0.1", "grammar-mlm-weight-0.5"]
    assert [*config.experiments["demo"].systems] == names
    runs = [config.run_settings("demo", "de-en", name).plain() for name in names]
    assert [run["system"].pop("mlm_weight") for run in runs] == [0.3, 0.0, 0.1, 0.5]
    assert all(run == runs[0] for run in runs)
    assert config.label(names[-1]) == "Grammar, mlm_weight 0.5"


def test_a_swept_system_has_its_firsts_options_on_a_corpus(values):
    values["corpora"]["demo"]["options"] = {"pascal": {"de-en": {"heads": 2}}}
    sweep(values, "options.sigma", 2, 3, systems=("pascal",), tables=["translation"])
    config = load(values)
    swept = [config.options("demo", "de-en", f"pascal-sigma-{n}") for n in (2, 3)]
    assert [(options.heads, options.sigma) for options in swept] == [(2, 2), (2, 3)]


def test_a_sweep_wins_over_the_corpus_option_that_it_varies(values):
    options = {"de-en": {"heads": 2}, "en-de": {"heads": 1, "ignore": 0.4}}
    values["corpora"]["demo"]["options"] = {"pascal": options}
    sweep(values, "options.heads", 3, 4, systems=("pascal",), tables=["translation"])
    config = load(values)
    names = ("pascal", "pascal-heads-3", "pascal-heads-4")
    runs = {way: [config.options("demo", way, name) for name in names] for way in options}
    assert {way: [run.heads for run in found] for way, found in runs.items()} == {
        "de-en": [2, 3, 4],
        "en-de": [1, 3, 4],
    }
    assert [run.ignore for run in runs["en-de"]] == [0.4] * 3


def test_a_swept_guide_has_no_option_of_another(values):
    values["systems"]["bare"] = {"guide": "pascal"}
    values["corpora"]["demo"]["options"] = {"bare": {"de-en": {"sigma": 2.0}}}
    sweep(values, "guide", "distance", systems=("bare",), tables=["translation"])
    assert load(values).run_settings("demo", "de-en", "bare-guide-distance").system.guide == "distance"


def test_no_weights_are_pretrained_on_sentences_that_their_systems_are_scored_on(values):
    config = load(values)
    files = DataFiles(config)
    trained = config.weights["roberta-base-synclm"].continued.parses
    for task in ("cola", "rte", "mrpc", "sts-b"):
        parses = {part: files.task_parses("glue", task, part) for part in ("train", "dev", "test")}
        assert not {*parses["train"]} & {*parses["dev"], *parses["test"]}
        assert {*parses["train"]} <= {*trained["train"], *trained["valid"]}
    assert [*files.parsed_together("glue", "mnli")["dev-"]] == ["dev_matched", "dev_mismatched"]
    for entry, prefix in (
        ("base", "results/glue/rte/syntax/dev-1"),
        ("demo", "demo/tasks/entailment/dev"),
        ("base", "results//glue/./rte/syntax/dev-1"),
        ("base", os.path.abspath("results/glue/rte/syntax/dev-1")),
    ):
        changed = copy.deepcopy(values)
        changed["weights"][f"roberta-{entry}-synclm"]["continued"]["parses"]["train"] = [prefix]
        message = f"weights.roberta-{entry}-synclm.continued.parses: {Path(prefix)}: its systems are scored on these sentences"
        assert message in refused(changed)
        if entry == "base":  # of all systems
            changed["benchmarks"]["glue"] |= {"weights": "roberta-base-synclm", "weights_of": {}}
            assert message in refused(changed)


def test_a_training_depends_on_the_decoding_of_its_corpus_if_it_decodes(values):
    values["corpora"]["demo"]["decoding"] = {"beam": 2}
    assert "decoding" not in load(values).run_settings("demo", "de-en", "grammar").plain()
    values["corpora"]["demo"].setdefault("training", {})["validate_bleu"] = 1
    run = load(values).run_settings("demo", "de-en", "grammar").plain()
    assert run["decoding"]["beam"] == RunSettings.model_validate(run).decoding.beam == 2


def test_each_part_of_a_task_comes_from_its_own_folder_of_the_users(values):
    values["benchmarks"]["glue"]["folder"] = "mine/"
    jobs = Jobs(load(values))
    found = {
        part: jobs(Wildcards(fromdict={"benchmark": "glue", "task": "mnli", "part": part})).task_sources()
        for part in ("train", "dev_matched", "test_matched", "ax")
    }
    assert found.pop("ax") == ["mine/diagnostic"]
    assert [*found.values()] == [["mine/MNLI"]] * 3


def test_a_training_key_can_be_swept(values):
    sweep(values, "training.dropout", 0.2, 0.3)
    config = load(values)
    systems = config.experiments["demo"].systems
    assert [*systems] == ["grammar", "grammar-training-dropout-0.2", "grammar-training-dropout-0.3"]
    runs = (config.run_settings("demo", "de-en", name) for name in systems)
    assert [run.training.dropout for run in runs] == [0.1, 0.2, 0.3]


def test_only_numbers_have_a_figure(values):
    sweep(values, "options.bpe", "concatenate", systems=("grammar", "grammar-nobpe"))
    config = load(values)
    assert "grammar-bpe-concatenate" in config.experiments["demo"].systems


@pytest.mark.parametrize(
    ("setting", "tried", "systems", "message"),
    [
        ("mlm_weight", [1.5], ["grammar"], "experiments.demo.sweep.mlm_weight: must be below 1 or 'corpus' (given: 1.5)"),
        ("mlm_weigth", [0.5], ["grammar"], "experiments.demo.sweep.mlm_weigth: unknown key 'mlm_weigth'; did you mean 'mlm_weight'?"),
        ("options.layer", [2], ["grammar"], "experiments.demo.sweep.options.layer: unknown key 'layer'; did you mean 'layers'?"),
        ("mlm_weight", [0.5], ["gramar"], "experiments.demo.systems: unknown system 'gramar'; did you mean 'grammar'?"),
        ("options.bpe_dim", [-1], ["grammar"], "experiments.demo.sweep.options.bpe_dim: must be above 0 (given: -1)"),
        ("guide", ["gramar"], ["transformer"], "experiments.demo.sweep.guide: unknown guide 'gramar'; did you mean 'grammar'?"),
        ("mlm_weight", [], ["grammar"], "experiments.demo.sweep.values"),
        ("mlm_weight", [[1]], ["grammar"], "experiments.demo.sweep.values.0"),
        ("label", ["A"], ["grammar"], "experiments.demo.sweep.setting: a label changes no training; sweep another setting"),
    ],
)  # fmt: skip
def test_faults_of_a_sweep_are_one_line(values, setting, tried, systems, message):
    sweep(values, setting, *tried, systems=systems)
    assert message in refused(values)


def test_a_sweep_takes_no_systems_name(values):
    values["systems"]["grammar-layers-2"] = {"guide": "lisa"}
    sweep(values, "options.layers", 2)
    message = "systems.grammar-layers-2: experiment 'demo' sweeps to this name; take another"
    assert message in refused(values)


GUIDE = {"mask_rate": 0.0, "mlm_weight": 0.0}


@pytest.mark.parametrize(
    ("guide", "options", "left_pads", "expected"),
    [
        ("none", {}, True, False),
        ("grammar", {}, True, False),
        ("grammar", {"calibration": "as-published"}, False, False),
        ("grammar", {"calibration": "as-published"}, True, True),
        ("structformer", {}, False, True),  # the default counts
    ],
)
def test_whether_a_batch_affects_its_sentences(guide, options, left_pads, expected):
    system = {"guide": guide, "options": options, "left_pad_source": left_pads} | GUIDE
    assert Guidance.model_validate(system).mixes is expected


@pytest.mark.parametrize("guide", ["sla", "syntax"])
def test_a_guide_of_roberta_guides_no_translation(guide):
    system = {"guide": guide, "options": {}, "left_pad_source": False} | GUIDE
    with pytest.raises(ValueError, match=f"guide '{guide}' is made for RoBERTa; give one that guides trans"):
        RunSettings.model_validate({"model": {}, "training": {}, "system": system})


@pytest.mark.parametrize("guide", ["pascal", "lpsi", "structformer", "templates", "grammar", "distance"])
def test_a_guide_of_translation_guides_no_roberta(guide):
    settings = {
        "task": "rte",
        "training": {"warmup_updates": 1, "total_updates": 2},
        "system": {"guide": guide, "options": {}} | GUIDE,
    }
    with pytest.raises(ValueError, match=f"guide '{guide}' cannot guide a RoBERTa, which takes guide `none`"):
        FinetuningSettings.model_validate(settings)
    for guide, options in (("sla", {}), ("grammar", {"bpe": "none"}), ("none", {})):
        settings["system"] |= {"guide": guide, "options": options}
        FinetuningSettings.model_validate(settings)


def test_sentencepiece_takes_text_as_it_is_by_characters_where_no_spaces_part_words():
    files = dict.fromkeys(("train", "valid", "test"), "x.{language}")
    raw = Corpus(languages=["th", "he"], files=files, text={"tokeniser": "sentencepiece"})
    assert (raw.text.tokeniser, raw.sentencepiece) == ({"th": "char", "he": "none"}, SentencePiece())
    mixed = {"tokeniser": {"de": "sentencepiece", "en": "moses"}}
    corpus = Corpus(languages=["de", "en"], files=files, text=mixed, sentencepiece={"vocab_size": 500})
    assert corpus.text.tokeniser == {"de": "none", "en": "moses"}
    assert (corpus.sentencepiece.vocab_size, corpus.bpe.merges) == (500, 500)
    words = Corpus(languages=["de", "en"], files=files, trees="corenlp", sentencepiece={})
    assert words.text.tokeniser == "moses"
    assert Corpus(languages=["de", "en"], files=files).sentencepiece is None
