"""Configurations that nobody can mean: each is refused in one line that names file and key."""

import re
from datetime import date
from functools import cache
from pathlib import Path

import pytest
import yaml

from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import load, merge, project_files, read_all
from synmask.pipeline.config.yaml_source import command_line_values, read_yaml
from synmask.pipeline.errors import UserError

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
    load(read_yaml(path))
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
        load(values)
    except UserError as error:
        message = str(error)
        assert "\n" not in message
        assert len(message) < 700
        assert not PYDANTIC.search(message), message
        return message
    return None


WRONG = [True, -1, float("nan"), 2**70, "", "x\ny", None, [1, 1], {1: {}}, {"a": {"b": []}}, date(2001, 1, 1), b"x"]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
def test_a_wrong_value_anywhere_is_one_line(small, wrong, monkeypatch):
    """At every key of the configuration: refused in one line that names the key, or accepted; no traceback."""
    path, values = small
    monkeypatch.setattr(
        "synmask.pipeline.config.loading.read_yaml", cache(read_yaml)
    )  # each file is read once
    message = {place: refusal(path, replaced(values, place, wrong)) for place in places(values)}
    assert len([line for line in message.values() if line]) > 40
    for place, line in message.items():
        assert line is None or place[0] in line or str(wrong) in line


def test_each_key_missing_is_one_line(small, monkeypatch):
    path, values = small
    monkeypatch.setattr("synmask.pipeline.config.loading.read_yaml", cache(read_yaml))
    inner = {place[:depth] for place in places(values) for depth in range(1, len(place) + 1)}
    message = [refusal(path, replaced(values, place)) for place in inner]
    assert len([line for line in message if line]) > 10


# Values laid over the configuration.
NOBODY_MEANS = [
    {"corpora": {"demo": {"training": {"average": 7}}}},
    {"training": {"average": 61}},
    {"training": {"checkpoint": "best-bleu"}},
    {"systems": {"grammar": {"training": {"checkpoint": "best-bleu"}}}},
    {"systems": {"grammar": {"training": {"max_epochs": 2}}}},
    {"seeds": [1, 2, 1]},
    {"seeds": [True]},
    {"seeds": [2**64]},
    {"seeds": [2**32]},
    {"targets": ["demo", "demo"]},
    {"experiments": {"demo": {"systems": ["grammar", "grammar"]}}},
    {"experiments": {"demo": {"directions": ["de-en", "de-en"]}}},
    {"experiments": {"demo": {"seeds": [1, 1]}}},
    {"experiments": {"both": ["demo", "demo"]}},
    {"experiments": {"both": []}},
    {"experiments": {"demo": {"tables": []}}},
    {"tables": {"demo-cost": {"metrics": ["memory", "memory"]}}},
    {"tables": {"demo-cost": {"metrics": ["glue"]}}},
    {"tables": {"nlu-demo": {"metrics": ["chrf"]}}},
    {"tables": {"nlu-demo": {"tasks": ["entailment", "entailment"]}}},
    {"tables": {"nlu-demo": {"systems": ["roberta", "majority"]}}, "systems": {"majority": {}}},
    {"corpora": {"demo": {"languages": ["de", "de"]}}},
    {"corpora": {"iwslt14": {"archives": ["a.tgz", "a.tgz"]}}},
    {"systems": {"grammar": {"label": "Transformer"}}},
    {"systems": {"grammar": {"label": " Transformer  "}}},
    *(
        {"systems": {"transformer": {"label": one}, "grammar": {"label": other}}}
        for one, other in (("Grammar", "grammar"), ("Stra\u00dfe", "STRASSE"))
    ),
    {"systems": {"grammar": {"label": "gold"}}},
    {"systems": {"roberta": {"label": "Majority"}}},
    {"systems": {"transformer": {"label": "ST-NMT"}}},
    {"systems": {"grammar": {"label": ""}}},
    {"systems": {"grammar": {"label": " "}}},
    {"training": {"lr": 2000}},
    {"benchmarks": {"nlu-demo": {"finetuning": {"lr": 20}}}},
    {"resources": {"mem_mb": 8}},
    {"resources": {"mem_mb": 8_000_000_000}},
    {"corenlp": {"mem_mb": 6}},
    {"resources": {"runtime": 10**6}},
    {"resources": {"runtime": "1:30:00"}},
    {"corpora": {"demo": {"text": {"tokeniser": "stanford"}}}},
    {"corpora": {"demo": {"text": {"tokeniser": {"de": "moses", "en": "juman"}}}}},
    {"experiments": {"demo-parsing": {"title": "x", "corpus": "demo", "directions": ["de-en"], "systems": ["grammar"]}}},
    {"data_dir": "/"},
    {"data_dir": "."},
    {"data_dir": "data/.."},
    {"data_dir": "results"},
    {"data_dir": "data/../results/x"},
    {"data_dir": "~nobody-here/data"},
    {"data_dir": "$NOT_SET/data"},
    {"data_dir": "/data/${NOT_SET}"},
    {"corpora": {"multi30k": {"url": "https://example.org/{x}"}}},
    {"benchmarks": {"glue": {"tasks": {"rte": {"urls": ["https://example.org/."]}}}}},
    {"benchmarks": {"glue": {"tasks": {"rte": {"urls": ["https://example.org/a/.."]}}}}},
    {"mirrors": {"multi30k": "https://example.org/{x}"}},
    {"mirrors": {"multi30k": "ftp://example.org"}},
    {"training": {"lr": float("inf")}},
    {"training": {"lr": ".inf"}},
    {"decoding": {"length_penalty": float("nan")}},
    {"training": {"max_epochs": True}},
    {"training": {"mlm_weight": {"de-en": True}}},
    {"corpora": {"demo": {"text": {"min_tokens": 61}}}},
    {"corpora": {"multi30k": {"pairs": {"train": [10, 5]}}}},
    {"corpora": {"multi30k": {"pairs": {"train": "many"}}}},
    {"corpora": {"multi30k": {"pairs": {"train": [1, 2, 3]}}}},
    {"benchmarks": {"nlu-demo": {"finetuning": {"warmup_updates": 401}}}},
    {"corpora": {"demo": {"sentence": 401}}},
    {"corpora": {"multi30k": {"sentence": 1015}}},
    {"corpora": {"iwslt14": {"options": {"distance": {"de-fr": {"heads": 3}}}}}},
    {"corpora": {"demo": {"training": {"mlm_weight": {"xx-yy": 0.3}}}}},
    {"corpora": {"demo": {"training": {"mlm_weight": {"en-de": 0.3}}}}},
    {"corpora": {"multi30k": {"sha256": {"tran.de.gz": "0" * 64}}}},
    {"corpora": {"multi30k": {"sha256": {"train.de.gz": "abc"}}}},
    {"corpora": {"multi30k": {"url": "multi30k"}}},
    {"corpora": {"multi30k-small": {"based_on": ["demo"]}}},
    {"corpora": {"multi30k-small": {"based_on": {}}}},
    {"corpora": {"multi30k": 3}},
    {"systems": {"roberta-grammar": {"options": {"layers": 5}}}},
    {"systems": {"x" * 65: {}}},
    {"systems": {"grammar": {"label": "x" * 1001}}},
    {"systems": {"grammar": {"model": {"heads": 3}}}},
    {"systems": {"grammar": {"model": {"embed_dim": 130}}}},
    {"systems": {"roberta": {"model": {"heads": 8}}}},
    {"systems": {"grammar": {"options": {"bpe_dim": 10**12}}}},
    {"systems": {"grammar": {"options": {"conv_kernel": 10**9 + 1}}}},
    {"systems": {"structformer": {"options": {"conv_kernel": 1024}}}},
    {"tables": {"demo-cost": {"systems": ["transformer", "transformer-mlm"]}}},
    *(
        {"data_dir": name}
        for name in (".git", ".snakemake", "docs", "tests", "profiles", "benchmarks")
    ),
    {"data_dir": "/dev/null"},
    {"data_dir": "/etc/passwd"},
    {"decoding": {"beam": 10**9}},
    {"decoding": {"length_penalty": 1e300}},
    {"resources": {"threads": 100_000}},
    {"resources": {"gpus": 10_000}},
    {"training": {"batch": {"gpus": 10**9}}},
    {"corpora": {"demo": {"model": {"embed_dim": 2, "heads": 1}}}},
    {"corpora": {"demo": {"generate": {"train": 6000}}}},
    {"corpora": {"demo": {"heads": {"dev": "x"}}}},
    {"weights": {"roberta-demo": {"pretrain": {"seed": -1}}}},
    {"weights": {"roberta-demo": {"pretrain": {"seed": 2**64}}}},
    {"corpora": {"demo": {"text": {"tokeniser": {"de": "moses", "en": "moses", "fr": "moses"}}}}},
    {"weights": {"roberta-demo": {"pretrain": {"model": {"max_positions": 2}}}}},
    {"benchmarks": {"nlu-demo": {"generate": 1}}},
    {"benchmarks": {"glue": {"parsed": True}}},
    {"benchmarks": {"nlu-demo": {"finetuning": {"max_tokens": 2}}}},
    {"benchmarks": {"nlu-demo": {"tasks": {"entailment": {"column": "acceptability"}}}}},
    *(
        {"experiments": {name: ["demo"]}}
        for name in ("benchmarks", "build", "site")
    ),
    {1: {}},
    {"systems": {None: {}}},
    *({"corpora": {name: {"languages": ["a", "b"]}}} for name in ("x",)),
    *(
        {"corpora": {name: {"based_on": "multi30k"}}}
        for name in ("tables", "figures", "logs", "weights", "benchmarks", "corenlp")
    ),
    {"corpora": {"roberta-demo": {"based_on": "demo"}}},
    *(
        {"systems": {name: {}}}
        for name in ("text", "tokens", "clean", "bpe", "bin", "syntax", "logs", "benchmarks", "seed1", "seed23")
    ),
    *(
        {"experiments": {name: ["demo"]}}
        for name in ("report", "downloads", "config", "results", "src")
    ),
    {"experiments": {"nlu-demo-entailment": ["demo"]}},
    {"tables": {"nlu-demo-entailment": {"title": "x", "experiments": ["demo"], "systems": ["grammar"]}}},
]  # fmt: skip


@pytest.mark.parametrize("over", NOBODY_MEANS, ids=lambda value: str(value)[:70])
def test_what_nobody_can_mean(small, over):
    path, values = small
    line = refusal(path, merge(values, over))
    assert line.startswith((f"{path}, line ", "--config: "))
    assert any(str(key) in line for place in leaves(over) for key in place)


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
    _, values = small
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    monkeypatch.setenv("HOME", "/home/me")
    over = {"data_dir": "${SCRATCH}/data", "mirrors": {"multi30k": "~/m", "corenlp": "$SCRATCH/m"}}
    config = load(merge(values, over))
    assert config.data_dir == "/scratch/me/data"
    assert config.mirrors == {"multi30k": "/home/me/m", "corenlp": "/scratch/me/m"}
    load(merge(values, {"corpora": {"multi30k": {"url": "http://[::1]:80/x"}}}))


@pytest.mark.parametrize("path", ["downloads/", "./downloads", "downloads//"])
def test_paths_are_as_snakemake_wants_them(small, path):
    """It warns of each file in such a folder, and takes other names of one file for others."""
    _, values = small
    assert load(merge(values, {"data_dir": path})).data_dir == "downloads"


def test_the_file_is_that_of_the_key(small, tmp_path):
    """In the file where the value in force stands; a missing key's is its section's; an inherited one's its own."""
    _, values = small
    mine, second = tmp_path / "mine.yaml", tmp_path / "second.yaml"

    def message_of(*texts, config=None):
        given = values
        for file, text in zip((mine, second), texts, strict=False):
            file.write_text(text)
            given = merge(given, read_yaml(file))
        with pytest.raises(UserError) as error:
            load(merge(given, command_line_values(config or {})))
        return str(error.value)

    assert message_of("# mine\ntraining:\n  lr: -1\n").startswith(
        f"{mine}, line 3: training.lr: must be above 0"
    )
    assert message_of("training: {lr: -1}", "seeds: [1]").startswith(f"{mine}, line 1: training.lr")
    assert message_of("training: {lr: 1}", "training: {lr: -1}").startswith(f"{second}, line 1: training.lr")
    assert message_of("training: {lr: 1}", config={"training": {"lr": -1}}).startswith(
        "--config: training.lr"
    )
    new = "experiments:\n  new: {corpus: demo}\n"
    assert message_of(new).startswith(f"{mine}, line 2: experiments.new.title: this key is missing")
    assert message_of("systems: {grammar: {guide: gramar}}").startswith(
        f"{mine}, line 1: systems.grammar.guide"
    )
    inherited = message_of("corpora: {multi30k-small: {bpe: {merges: 5}}, multi30k: {pairs: {test: -1}}}")
    assert inherited.startswith(f"{mine}, line 1: corpora.multi30k.pairs.test: must be above 0")
    assert message_of("seeds: [1]", config={"corpora": {"demo": {"sentence": -1}}}).startswith(
        "--config: corpora.demo.sent"
    )
    assert message_of("corpora: {iwslt14: {files: {}}}").startswith(
        f"{mine}, line 1: corpora.iwslt14: give one of"
    )
    assert message_of(
        "training: {average: 6}", "decoding: {beam: 2}", config={"corpora": {"iwslt14": {"files": {}}}}
    ).startswith("--config: corpora.iwslt14: give one of")


def test_an_inherited_value_is_named_where_it_is_written(small, tmp_path):
    _, values = small
    (tmp_path / "mine.yaml").write_text(
        "decoding: {beam: 0}\nbenchmarks: {nlu-demo: {finetuning: {dropout: 2}}}\n"
    )
    for section, message in (
        ("decoding", "line 1: decoding.beam"),
        ("benchmarks", "line 2: benchmarks.nlu-demo.finetuning.dropout"),
    ):
        over = {section: read_yaml(tmp_path / "mine.yaml")[section]}
        with pytest.raises(UserError) as error:
            load(merge(values, over))
        assert str(error.value).startswith(f"{tmp_path}/mine.yaml, {message}: must be")


def test_trees_can_be_switched_off(small):
    _, values = small
    over = {"corpora": {"multi30k-small": {"trees": None}}}
    assert DataFiles(load(values)).gold_trees("multi30k-small", "de")
    assert DataFiles(load(merge(values, over))).gold_trees("multi30k-small", "de") is None
    assert DataFiles(load(merge(values, over))).gold_trees("multi30k", "de")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"a: 1\nb: \xff\n", ", line 2: "),
        (b"a: 1\nb: x\0y\n", ": "),
        (b"a: 1\nb: [1\n", ", line 3: "),
        (b"a:\n\tb: 1\n", ", line 2: "),
        (b"a: 1\n? [x]\n: 2\n", ", line 2: "),
        (b"a: 1\nb: !!int x\n", ", line 2: "),
        (b"a: 1\n<<: [b]\n", ", line 2: "),
        (b"a: " + b"9" * 5000, ", line 1: "),
        (b"a: !!bool x", ", line 1: "),
        (b"a: !!python/object/apply:os.system [ls]", ", line 1: "),
        (b"a: {x: 1}\nb:\n  <<: *c\n", ", line 3: "),
        (b"--- {a: 1}\n--- {b: 1}\n", ", line 2: "),
        (b"x" * 100, ": "),
    ],
)
def test_what_is_no_yaml(tmp_path, text, place):
    path = tmp_path / "mine.yaml"
    path.write_bytes(text)
    with pytest.raises(UserError) as error:
        read_yaml(path)
    assert str(error.value).startswith(f"{path}{place}")
    assert "\n" not in str(error.value)


def test_aliases_of_themselves(tmp_path, small):
    path = tmp_path / "mine.yaml"
    path.write_text("training: &a {batch: *a}\ncorpora: {demo: {training: *a}}\n")
    with pytest.raises(UserError) as error:
        load(merge(small[1], read_yaml(path)))
    assert "\n" not in str(error.value)


def test_merge_keys(tmp_path):
    """<< lays a mapping under the keys beside it."""
    path = tmp_path / "mine.yaml"
    path.write_text("base: &base\n  lr: 1\n  beam: 2\nmine:\n  <<: *base\n  lr: 3\n")
    assert read_yaml(path)["mine"] == {"lr": 3, "beam": 2}


def test_a_list_that_lacks_an_item_is_blamed_on_the_file_that_gives_it(small, tmp_path):
    _, values = small
    mine = tmp_path / "mine.yaml"
    mine.write_text("seeds: [1]\ntraining:\n  adam_betas: [0.9]\n")
    with pytest.raises(UserError) as error:
        load(merge(values, read_yaml(mine)))
    assert str(error.value) == f"{mine}, line 3: training.adam_betas.1: this key is missing"


def test_a_long_value_is_shown_by_its_beginning():
    with pytest.raises(UserError, match=r"\(given: 'x{78}…\)"):
        load({**read_all(project_files(ROOT)), "seeds": "x" * 200})
