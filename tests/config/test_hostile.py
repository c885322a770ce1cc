"""Configurations that nobody can mean: each is refused in one line that names file and key."""

import re
from datetime import date
from functools import cache
from pathlib import Path

import pytest
import yaml

from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.yaml_source import read_yaml
from synmask.pipeline.files import UserError

ROOT = Path(__file__).parents[2]
KEPT = {  # of config.yaml: one entry of each kind
    "systems": ["transformer", "transformer-mlm", "grammar", "pascal", "distance", "lpsi", "structformer", "roberta", "roberta-grammar"],
    "corpora": ["demo", "multi30k", "multi30k-small", "aspec", "iwslt14"],
    "weights": ["roberta-base", "roberta-demo"],
    "benchmarks": ["nlu-demo"],
    "experiments": ["demo", "iwslt14"],
    "tables": ["demo-cost", "nlu-demo"],
}  # fmt: skip
PYDANTIC = re.compile(
    r"Input should|constrained|valid (tuple|list|dict|string|int|number|bool)|union|pydantic"
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A short configuration: its file and its values."""
    values = read_all(project_files(ROOT)) | {"published": str(ROOT / "workflow/published.yaml")}
    for section, names in KEPT.items():
        values[section] = {name: values[section][name] for name in names}
    values["corpora"]["aspec"]["options"] = {}
    values["corpora"]["iwslt14"]["options"] = {"distance": {"en-de": {"heads": 3}}}
    for name in ("demo", "iwslt14"):
        values["experiments"][name]["systems"] = ["transformer", "grammar"]
    values["experiments"]["iwslt14"]["peers"] = ["st-nmt"]
    values["tables"]["demo-cost"]["systems"] = ["transformer", "grammar"]
    values["benchmarks"]["nlu-demo"]["weights_of"] = {}
    values["tables"]["nlu-demo"]["systems"] = ["roberta", "roberta-grammar"]
    path = tmp_path_factory.mktemp("small") / "config.yaml"
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    load(read_yaml(path), [path])
    return path, read_yaml(path)


def leaves(value, path=()):
    """The paths of all values that are no mappings."""
    if not isinstance(value, dict) or not value:
        return [path]
    return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]


def places(values):
    """The paths of all values; of entries alike (systems, checksums …) those of one."""
    shapes = {}
    for path in leaves(values):
        shape = (path[0], *path[2:]) if path[0] in KEPT else path
        shapes.setdefault(shape[:-1] if {"sha256", "jars", "segmenter"} & {*shape} else shape, path)
    return list(shapes.values())


def replaced(values, path, *value):
    """`values` with another value at `path`, or with none there."""
    if not path:
        return value[0]
    rest = {key: inner for key, inner in values.items() if key != path[0]}
    if len(path) == 1 and not value:
        return rest
    return rest | {path[0]: replaced(values[path[0]], path[1:], *value)}


def refusal(path, values):
    """The one line that says what is wrong, None if nothing is."""
    try:
        load(values, [path])
    except UserError as error:
        said = str(error)
        assert "\n" not in said
        assert len(said) < 700
        assert not PYDANTIC.search(said), said
        return said
    return None


WRONG = [True, -1, 0, 0.5, float("inf"), float("nan"), 2**70, "", " ", "x\ny", "a b'c\"; $(x)", "ü" * 300, None,
         [], [1, 1], ["a", "a"], [True], {}, {"a": 1}, {1: {}}, {"a": {"b": []}}, date(2001, 1, 1), b"x"]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
def test_a_wrong_value_anywhere_is_one_line(small, wrong, monkeypatch):
    """At every key of the configuration: refused in one line that names the key, or accepted; no traceback."""
    path, values = small
    monkeypatch.setattr(
        "synmask.pipeline.config.loading.read_yaml", cache(read_yaml)
    )  # each file is read once
    said = {place: refusal(path, replaced(values, place, wrong)) for place in places(values)}
    assert len([line for line in said.values() if line]) > 40
    for place, line in said.items():
        assert line is None or place[0] in line or str(wrong) in line


def test_each_key_missing_is_one_line(small, monkeypatch):
    path, values = small
    monkeypatch.setattr("synmask.pipeline.config.loading.read_yaml", cache(read_yaml))
    inner = {place[:depth] for place in places(values) for depth in range(1, len(place) + 1)}
    said = [refusal(path, replaced(values, place)) for place in inner]
    assert len([line for line in said if line]) > 10


NUMBER = "must be a number, not true or false"
# Values laid over the configuration → the message.
NOBODY_MEANS = [
    ({"corpora": {"demo": {"training": {"average": 7}}}}, "corpora.demo.training.average: 7 epochs to average, but only 6 trained"),
    ({"training": {"average": 61}}, "training.average: 61 epochs to average"),
    ({"training": {"checkpoint": "best-bleu"}}, "training.checkpoint: best-bleu needs a validate_bleu above 0"),
    ({"systems": {"grammar": {"training": {"checkpoint": "best-bleu"}}}}, "systems.grammar.training.checkpoint: best-bleu needs a validate_bleu"),
    ({"systems": {"grammar": {"training": {"max_epochs": 2}}}}, "systems.grammar.training.average: 3 epochs to average, but only 2 trained"),
    ({"seeds": [1, 2, 1]}, "seeds: 1 is given twice (given: [1, 2, 1])"),
    ({"seeds": [True]}, f"seeds.0: {NUMBER}"),
    ({"seeds": [2**64]}, "seeds.0: must be below"),
    ({"seeds": [2**32]}, "seeds.0: must be below 2.14748e+09"),
    ({"targets": ["demo", "demo"]}, "targets: 'demo' is given twice"),
    ({"experiments": {"demo": {"systems": ["grammar", "grammar"]}}}, "experiments.demo.systems: 'grammar' is given twice"),
    ({"experiments": {"demo": {"directions": ["de-en", "de-en"]}}}, "experiments.demo.directions: 'de-en' is given twice"),
    ({"experiments": {"demo": {"seeds": [1, 1]}}}, "experiments.demo.seeds: 1 is given twice"),
    ({"experiments": {"both": ["demo", "demo"]}}, "experiments.both: 'demo' is given twice"),
    ({"experiments": {"both": []}}, "experiments.both: must have at least 1"),
    ({"experiments": {"demo": {"tables": []}}}, "experiments.demo.tables: must have at least 1"),
    ({"tables": {"demo-cost": {"metrics": ["memory", "memory"]}}}, "tables.demo-cost.metrics: 'memory' is given twice"),
    ({"tables": {"demo-cost": {"metrics": ["glue"]}}}, "tables.demo-cost: the metric glue needs a benchmark"),
    ({"tables": {"nlu-demo": {"metrics": ["chrf"]}}}, "tables.nlu-demo: a benchmark's table needs metrics: [glue]"),
    ({"tables": {"nlu-demo": {"tasks": ["entailment", "entailment"]}}}, "tables.nlu-demo.tasks: 'entailment' is given twice"),
    ({"tables": {"nlu-demo": {"systems": ["roberta", "majority"]}}, "systems": {"majority": {}}}, "tables.nlu-demo.systems: 'majority' is a trivial baseline's name"),
    ({"corpora": {"demo": {"languages": ["de", "de"]}}}, "corpora.demo.languages: 'de' is given twice"),
    ({"corpora": {"iwslt14": {"archives": ["a.tgz", "a.tgz"]}}}, "corpora.iwslt14.archives: 'a.tgz' is given twice"),
    ({"systems": {"grammar": {"label": "Transformer"}}}, "experiments.demo.systems: system 'grammar' is called 'Transformer', as 'transformer' is; give it another label"),
    ({"systems": {"grammar": {"label": " Transformer  "}}}, "system 'grammar' is called 'Transformer', as 'transformer' is"),
    *(
        ({"systems": {"transformer": {"label": one}, "grammar": {"label": other}}}, "as 'transformer' is; give it another label")
        for one, other in (("Grammar", "grammar"), ("Gr\u00e4mmar", "Gra\u0308mmar"), ("Ours (2)", "Ours (２)"), ("Stra\u00dfe", "STRASSE"), ("Grammar", "Gr\u0430mmar"), ("TABEO", "ТАВЕО"), ("Ours", "Οurs"))
    ),
    ({"systems": {"grammar": {"label": "gold"}}}, "system 'grammar' is called 'gold', as a row that stands there by itself is"),
    ({"systems": {"roberta": {"label": "Majority"}}}, "tables.nlu-demo.systems: system 'roberta' is called 'Majority', as a row"),
    ({"systems": {"transformer": {"label": "ST-NMT"}}}, "experiments.iwslt14.systems: system 'st-nmt' is called 'ST-NMT', as 'transformer' is"),
    ({"systems": {"grammar": {"label": ""}}}, "systems.grammar.label: must not be empty"),
    ({"systems": {"grammar": {"label": " "}}}, "systems.grammar.label: must not be empty"),
    ({"training": {"lr": 2000}}, "training.lr: must be at most 10 (given: 2000)"),
    ({"benchmarks": {"nlu-demo": {"finetuning": {"lr": 20}}}}, "lr: must be at most 10"),
    ({"resources": {"mem_mb": 8}}, "resources.mem_mb: must be at least 256 (given: 8)"),
    ({"resources": {"mem_mb": 8_000_000_000}}, "resources.mem_mb: must be at most 1e+08"),
    ({"corenlp": {"mem_mb": 6}}, "corenlp.mem_mb: must be at least 256"),
    ({"resources": {"runtime": 10**6}}, "resources.runtime: must be at most 527040"),
    ({"resources": {"runtime": "1:30:00"}}, "resources.runtime: must be a whole number"),
    ({"seeds": ["010"]}, "seeds.0: must be a number without zeros before it"),
    ({"corpora": {"demo": {"bpe": {"merges": "01500"}}}}, "corpora.demo.bpe.merges: must be a number without zeros before it (given: '01500')"),
    ({"corpora": {"demo": {"text": {"tokeniser": "stanford"}}}}, "corpora.demo: text.tokeniser: stanford is for zh, not for de"),
    ({"corpora": {"demo": {"text": {"tokeniser": {"de": "moses", "en": "juman"}}}}}, "corpora.demo: text.tokeniser: juman is for ja, not for en"),
    ({"experiments": {"demo-parsing": {"title": "x", "corpus": "demo", "directions": ["de-en"], "systems": ["grammar"]}}}, "experiments.demo-parsing: another target, or the table of its trees or of one task, has this name"),
    ({"data_dir": "/"}, "data_dir: '/' cannot be a folder of downloads alone"),
    ({"data_dir": "."}, "data_dir: '.' cannot be a folder of downloads alone"),
    ({"data_dir": "data/.."}, "data_dir: 'data/..' cannot be a folder of downloads alone"),
    ({"data_dir": "results"}, "data_dir: 'results' cannot be a folder of downloads alone"),
    ({"data_dir": "data/../results/x"}, "'data/../results/x' cannot be a folder of downloads alone"),
    ({"data_dir": "~nobody-here/data"}, "data_dir: ~nobody-here stands for nothing on this machine; set it"),
    ({"data_dir": "$NOT_SET/data"}, "data_dir: $NOT_SET stands for nothing on this machine; set it, or write the folder out"),
    ({"data_dir": "/data/${NOT_SET}"}, "data_dir: ${NOT_SET} stands for nothing on this machine"),
    ({"corpora": {"multi30k": {"url": "https://example.org/{x}"}}}, "corpora.multi30k.url: no braces in a URL; write %7B and %7D"),
    ({"benchmarks": {"glue": {"tasks": {"rte": {"urls": ["https://example.org/."]}}}}}, "tasks.rte.urls.0: ends in a dot; name the file or folder"),
    ({"benchmarks": {"glue": {"tasks": {"rte": {"urls": ["https://example.org/a/.."]}}}}}, "tasks.rte.urls.0: ends in a dot"),
    ({"mirrors": {"multi30k": "https://example.org/{x}"}}, "mirrors.multi30k: no braces in a URL"),
    ({"mirrors": {"multi30k": "ftp://example.org"}}, "mirrors.multi30k: must be an http, https or file URL"),
    ({"training": {"lr": float("inf")}}, "training.lr: must be a finite number (given: inf)"),
    ({"training": {"lr": ".inf"}}, "training.lr: must be a"),
    ({"decoding": {"length_penalty": float("nan")}}, "decoding.length_penalty: must be a finite number (given: nan)"),
    ({"training": {"max_epochs": True}}, f"training.max_epochs: {NUMBER} (given: true)"),
    ({"training": {"mlm_weight": {"de-en": True}}}, f"training.mlm_weight.de-en: {NUMBER}"),
    ({"corpora": {"demo": {"text": {"min_tokens": 61}}}}, "corpora.demo.text: min_tokens 61 is above max_tokens 60"),
    ({"corpora": {"multi30k": {"pairs": {"train": [10, 5]}}}}, "corpora.multi30k: pairs.train: 10 is above 5"),
    ({"corpora": {"multi30k": {"pairs": {"train": "many"}}}}, "corpora.multi30k.pairs.train: must be a whole number (given: 'many')"),
    ({"corpora": {"multi30k": {"pairs": {"train": [1, 2, 3]}}}}, "corpora.multi30k.pairs.train: must have at most 2"),
    ({"benchmarks": {"nlu-demo": {"finetuning": {"warmup_updates": 401}}}}, "warmup_updates 401 is above total_updates 250"),
    ({"corpora": {"demo": {"sentence": 401}}}, "corpora.demo.sentence: there is no sentence 401: the validation set has 400"),
    ({"corpora": {"multi30k": {"sentence": 1015}}}, "corpora.multi30k.sentence: there is no sentence 1015"),
    ({"corpora": {"iwslt14": {"options": {"distance": {"de-fr": {"heads": 3}}}}}}, "corpora.iwslt14.options.distance.de-fr: unknown direction 'de-fr'; did you mean 'de-en'?"),
    ({"corpora": {"demo": {"training": {"mlm_weight": {"xx-yy": 0.3}}}}}, "corpora.demo.training.mlm_weight.xx-yy: unknown direction 'xx-yy'"),
    ({"corpora": {"demo": {"training": {"mlm_weight": {"en-de": 0.3}}}}}, "corpora.demo.training.mlm_weight: no value for de-en, which experiment 'demo' needs"),
    ({"corpora": {"multi30k": {"sha256": {"tran.de.gz": "0" * 64}}}}, "sha256.tran.de.gz: unknown download 'tran.de.gz'; did you mean 'train.de.gz'?"),
    ({"corpora": {"multi30k": {"sha256": {"train.de.gz": "abc"}}}}, "sha256.train.de.gz: must be a sha256: 64 digits"),
    ({"corpora": {"multi30k": {"url": "multi30k"}}}, "corpora.multi30k.url: must be an http, https or file URL"),
    ({"corpora": {"multi30k-small": {"based_on": ["demo"]}}}, "corpora.multi30k-small.based_on: unknown corpus ['demo']"),
    ({"corpora": {"multi30k-small": {"based_on": {}}}}, "corpora.multi30k-small.based_on: unknown corpus {}"),
    ({"corpora": {"multi30k": 3}}, "corpora.multi30k: must be keys and values"),
    ({"systems": {"roberta-grammar": {"options": {"layers": 5}}}}, "tables.nlu-demo.systems: system 'roberta-grammar' guides 5 layers, weights 'roberta-demo' have 3"),
    ({"systems": {"x" * 65: {}}}, "longer than 64 characters"),
    ({"systems": {"grammar": {"label": "x" * 1001}}}, "systems.grammar.label: longer than 1000 characters"),
    ({"systems": {"grammar": {"model": {"heads": 3}}}}, "systems.grammar.model: on corpus 'demo': embed_dim 128 is not a multiple of heads 3"),
    ({"systems": {"grammar": {"model": {"embed_dim": 130}}}}, "systems.grammar.model: on corpus 'demo': embed_dim 130 is not a multiple of heads 4"),
    ({"systems": {"roberta": {"model": {"heads": 8}}}}, "tables.nlu-demo.systems: system 'roberta' has `model`, but its weights have their sizes"),
    ({"systems": {"grammar": {"options": {"bpe_dim": 10**12}}}}, "systems.grammar.options.bpe_dim: must be at most 65536"),
    ({"systems": {"grammar": {"options": {"conv_kernel": 10**9 + 1}}}}, "systems.grammar.options.conv_kernel: must be below 1024"),
    ({"systems": {"structformer": {"options": {"conv_kernel": 1024}}}}, "systems.structformer.options.conv_kernel: must be below 1024"),
    ({"tables": {"demo-cost": {"systems": ["transformer", "transformer-mlm"]}}}, "tables.demo-cost.systems: system 'transformer-mlm' is in none of the table's experiments"),
    *(
        ({"data_dir": name}, f"data_dir: '{name}' cannot be a folder of downloads alone")
        for name in (".git", ".snakemake", "docs", "tests", "profiles", "benchmarks")
    ),
    ({"data_dir": "/dev/null"}, "data_dir: '/dev/null' cannot be a folder of downloads alone"),
    ({"data_dir": "/etc/passwd"}, "data_dir: '/etc/passwd' cannot be a folder of downloads alone"),
    ({"decoding": {"beam": 10**9}}, "decoding.beam: must be at most 1000"),
    ({"decoding": {"length_penalty": 1e300}}, "decoding.length_penalty: must be at most 10"),
    ({"resources": {"threads": 100_000}}, "resources.threads: must be at most 1024"),
    ({"resources": {"gpus": 10_000}}, "resources.gpus: must be at most 1024"),
    ({"training": {"batch": {"gpus": 10**9}}}, "training.batch.gpus: must be at most 1024"),
    ({"corpora": {"demo": {"model": {"embed_dim": 2, "heads": 1}}}}, "corpora.demo.model.embed_dim: must be at least 4"),
    ({"corpora": {"demo": {"generate": {"train": 10**12}}}}, "corpora.demo.generate.train: must be at most 1e+07"),
    ({"corpora": {"demo": {"generate": {"seed": -1}}}}, "corpora.demo.generate.seed: must be above 0"),
    ({"corpora": {"demo": {"generate": {"seed": 2**64}}}}, "corpora.demo.generate.seed: must be below"),
    ({"corpora": {"demo": {"languages": ["de", "en", "fr"]}}}, "corpora.demo: what is generated is de and en"),
    ({"corpora": {"demo": {"text": {"tokeniser": {"de": "moses", "en": "moses", "fr": "moses"}}}}}, "corpora.demo: text.tokeniser: give one for each of de, en, and no others"),
    ({"weights": {"roberta-demo": {"pretrain": {"model": {"max_positions": 2}}}}}, "pretrain.model.max_positions: must be at least 3"),
    ({"benchmarks": {"nlu-demo": {"generate": -1}}}, "benchmarks.nlu-demo.generate: must be above 0"),
    ({"benchmarks": {"nlu-demo": {"folder": "glue"}}}, "benchmarks.nlu-demo: give `generate` or `folder`, not both"),
    ({"benchmarks": {"nlu-demo": {"finetuning": {"max_tokens": 2}}}}, "max_tokens: must be at least 3"),
    ({"benchmarks": {"nlu-demo": {"tasks": {"entailment": {"column": "acceptability"}}}}}, "benchmarks.nlu-demo.tasks.entailment.column: 'acceptability' is that of 'acceptability'"),
    *(
        ({"experiments": {name: ["demo"]}}, f"experiments.{name}: a folder has this name, of results or the project; take another")
        for name in ("benchmarks", "build", "site")
    ),
    ({1: {}}, "1: a key must be text; put it in quotes"),
    ({"systems": {None: {}}}, "systems: a key must be text; put it in quotes (given: null)"),
    *(({"corpora": {name: {"languages": ["a", "b"]}}}, f"corpora.{name}.languages.0: must be a language code") for name in ("x",)),
    *(
        ({"corpora": {name: {"based_on": "multi30k"}}}, f"corpora.{name}: a folder has this name, of results or the project; take another")
        for name in ("tables", "figures", "logs", "weights", "benchmarks", "corenlp")
    ),
    ({"corpora": {"roberta-demo": {"based_on": "demo"}}}, "corpora.roberta-demo: weights, a corpus or a benchmark has this name"),
    *(
        ({"systems": {name: {}}}, f"systems.{name}: a folder has this name, of results or the project; take another")
        for name in ("text", "tokens", "clean", "bpe", "bin", "syntax", "logs", "benchmarks", "seed1", "seed23")
    ),
    *(
        ({"experiments": {name: ["demo"]}}, f"experiments.{name}: a folder has this name, of results or the project; take another")
        for name in ("report", "downloads", "config", "results", "src")
    ),
    ({"experiments": {"nlu-demo-entailment": ["demo"]}}, "experiments.nlu-demo-entailment: another target, or the table of its trees or of one task, has this name"),
    ({"tables": {"nlu-demo-entailment": {"title": "x", "experiments": ["demo"], "systems": ["grammar"]}}}, "tables.nlu-demo-entailment: another target, or the table of its trees or of one task, has this name"),
]  # fmt: skip


@pytest.mark.parametrize(("over", "said"), NOBODY_MEANS, ids=lambda value: str(value)[:70])
def test_what_nobody_can_mean(small, over, said):
    path, values = small
    line = refusal(path, merge(values, over))
    assert line is not None
    assert said in line


@pytest.mark.parametrize(
    "login", ["me:s3cret@", "s3cret@", "me:s3/cret@", "me:" + "s3cret" * 20 + "@", "me:s3cret/"]
)
@pytest.mark.parametrize("place", ["url", "mirrors", "twice", "list", "command"])
def test_a_password_in_a_url_is_refused_and_not_said(small, login, place):
    path, values = small
    url = f"https://{login}example.org/x"
    over = {
        "url": {"corpora": {"multi30k": {"url": url}}},
        "mirrors": {"mirrors": {"multi30k": url}},
        "twice": {"benchmarks": {"glue": {"tasks": {"rte": {"urls": [url, url]}}}}},
        "list": {"corpora": {"multi30k": {"url": [url]}}},
        "command": {"targets": [url]},
    }[place]
    line = refusal(path, merge(values, over))
    assert line is not None
    assert "s3cr" not in line or not login.endswith("@")
    assert place in ("list", "command") or ".netrc" in line


def test_variables_in_paths_are_expanded(small, monkeypatch):
    path, values = small
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    monkeypatch.setenv("HOME", "/home/me")
    over = {"data_dir": "${SCRATCH}/data", "mirrors": {"multi30k": "~/m", "corenlp": "$SCRATCH/m"}}
    config = load(merge(values, over), [path])
    assert config.data_dir == "/scratch/me/data"
    assert config.mirrors == {"multi30k": "/home/me/m", "corenlp": "/scratch/me/m"}
    load(merge(values, {"corpora": {"multi30k": {"url": "http://[::1]:80/x"}}}), [path])


def test_the_file_is_that_of_the_key(small, tmp_path):
    """In the file where the value in force stands; a missing key's is its section's; an inherited one's its own."""
    path, values = small
    mine, second = tmp_path / "mine.yaml", tmp_path / "second.yaml"

    def said(*texts, config=None):
        given = values
        for file, text in zip((mine, second), texts, strict=False):
            file.write_text(text)
            given = merge(given, read_yaml(file))
        with pytest.raises(UserError) as error:
            load(merge(given, config or {}), [path, mine, second][: len(texts) + 1])
        return str(error.value)

    assert said("# mine\ntraining:\n  lr: -1\n").startswith(f"{mine}: training.lr: must be above 0")
    assert said("training: {lr: -1}", "seeds: [1]").startswith(f"{mine}: training.lr")
    assert said("training: {lr: 1}", "training: {lr: -1}").startswith(f"{second}: training.lr")
    assert said("training: {lr: 1}", config={"training": {"lr": -1}}).startswith("--config: training.lr")
    new = "experiments:\n  new: {corpus: demo}\n"
    assert said(new).startswith(f"{mine}: experiments.new.title: this key is missing")
    assert said("systems: {grammar: {guide: gramar}}").startswith(f"{mine}: systems.grammar.guide")
    inherited = said("corpora: {multi30k-small: {bpe: {merges: 5}}, multi30k: {pairs: {test: -1}}}")
    assert inherited.startswith(f"{mine}: corpora.multi30k.pairs.test: must be above 0")
    assert said("seeds: [1]", config={"corpora": {"demo": {"sentence": -1}}}).startswith(
        "--config: corpora.demo.sent"
    )
    assert said("corpora: {demo: {files: {}}}").startswith(f"{mine}: corpora.demo: give one of")
    assert said(
        "training: {average: 6}", "decoding: {beam: 2}", config={"corpora": {"demo": {"files": {}}}}
    ).startswith("--config: corpora.demo: give one of")


def test_an_inherited_value_is_named_where_it_is_written(small, tmp_path):
    path, values = small
    (tmp_path / "mine.yaml").write_text(
        "decoding: {beam: 0}\nbenchmarks: {nlu-demo: {finetuning: {dropout: 2}}}\n"
    )
    for section, said in (
        ("decoding", "decoding.beam"),
        ("benchmarks", "benchmarks.nlu-demo.finetuning.dropout"),
    ):
        over = {section: read_yaml(tmp_path / "mine.yaml")[section]}
        with pytest.raises(UserError) as error:
            load(merge(values, over), [path, tmp_path / "mine.yaml"])
        assert str(error.value).startswith(f"{tmp_path}/mine.yaml: {said}: must be")


def test_trees_can_be_switched_off(small):
    path, values = small
    over = {"corpora": {"multi30k-small": {"trees": None}}}
    assert load(values, [path]).gold_trees("multi30k-small", "valid", "de")
    assert load(merge(values, over), [path]).gold_trees("multi30k-small", "valid", "de") is None
    assert load(merge(values, over), [path]).gold_trees("multi30k", "valid", "de")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: 1\nb: \xff\n", "line 2: not UTF-8; convert the file"),
        (b"a: 1\nb: x\0y\n", "line 2: a character that YAML does not allow ('\\x00'); delete it"),
        ("ä: ö\nb: \x01\n".encode(), "line 2: a character that YAML does not allow"),
        (b"a: 1\nb: [1\n", "line 3: not YAML (did not find expected ',' or ']')"),
        (b"a:\n\tb: 1\n", "line 2: not YAML (found character that cannot start any token)"),
        (b"a: 1\n? [x]\n: 2\n", "line 2: a key must be a word or a number"),
        (b"a: 1\nb: 2001-99-99\n", "line 2: not a valid timestamp; put it in quotes if it is text"),
        (b"a: " + b"9" * 5000, "line 1: not a valid int"),
        (b"a: !!timestamp x", "line 1: not a valid timestamp"),
        (b"a: !!bool x", "line 1: not a valid bool"),
        (b"a: !!python/object/apply:os.system [ls]", "line 1: not YAML (could not determine a constructor"),
        (b"a: {x: 1}\nb:\n  <<: *c\n", "line 3: not YAML (found undefined alias)"),
        (b"--- {a: 1}\n--- {b: 1}\n", "line 2: not YAML (but found another document)"),
        (b"x" * 100, "expected keys and values, found 'xxx"),
    ],
)  # fmt: skip
def test_what_is_no_yaml(tmp_path, text, said):
    path = tmp_path / "mine.yaml"
    path.write_bytes(text)
    with pytest.raises(UserError) as error:
        read_yaml(path)
    assert str(error.value).startswith(f"{path}")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_brackets_without_end_and_aliases_of_themselves(tmp_path, small):
    path = tmp_path / "mine.yaml"
    path.write_text("[" * 100_000)
    with pytest.raises(UserError, match="line 1: nested more than 50 levels deep"):
        read_yaml(path)
    path.write_text("training: &a {batch: *a}\ncorpora: {demo: {training: *a}}\n")
    with pytest.raises(UserError) as error:
        load(merge(small[1], read_yaml(path)), [small[0], path])
    assert "\n" not in str(error.value)


def test_merge_keys(tmp_path):
    """<< lays a mapping under the keys beside it."""
    path = tmp_path / "mine.yaml"
    path.write_text("base: &base\n  lr: 1\n  beam: 2\nmine:\n  <<: *base\n  lr: 3\n")
    assert read_yaml(path)["mine"] == {"lr": 3, "beam": 2}


@pytest.mark.parametrize(
    ("number", "said"),
    [("010", "8"), ("01500", "832"), ("-07", "-7"), ("1:30:00", "5400"), ("8192:30", "491550"), ("1:30.5", "90.5"), ("1_0:30", "630")],
)  # fmt: skip
def test_numbers_that_yaml_reads_in_another_base_are_refused_wherever_they_stand(tmp_path, number, said):
    path = tmp_path / "mine.yaml"
    for text in (f"a: 1\nb: {{c: [2, {number}]}}\n", f"a: 1\n{number}: x\n"):
        path.write_text(text)
        with pytest.raises(UserError) as error:
            read_yaml(path)
        assert str(error.value).startswith(
            f"{path}, line 2: {number} is {said} in YAML; write that number, or"
        )
    path.write_text(f"a: '{number}'\nb: [0, 0.5, 10, 0x1f, 1_000, 2001-01-01, 1:x]\n")
    assert read_yaml(path)["b"] == [0, 0.5, 10, 31, 1000, date(2001, 1, 1), "1:x"]


def test_a_list_that_lacks_an_item_is_blamed_on_the_file_that_gives_it(small, tmp_path):
    path, values = small
    mine = tmp_path / "mine.yaml"
    mine.write_text("seeds: [1]\ntraining:\n  adam_betas: [0.9]\n")
    with pytest.raises(UserError) as error:
        load(merge(values, read_yaml(mine)), [path, mine])
    assert str(error.value) == f"{mine}: training.adam_betas.1: this key is missing"
