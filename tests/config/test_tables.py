"""Faults in tables, and in groups of experiments: one line each."""

import copy
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.errors import UserError

ROOT = Path(__file__).parents[2]
FILES = project_files(ROOT)


@pytest.fixture
def values():
    return copy.deepcopy(read_all(FILES)) | {"published": str(ROOT / "workflow/published.yaml")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["tables"]["mlm"].update(systems=["gramar"]), "tables.mlm.systems: unknown system 'gramar'; did you mean 'grammar'?"),
        (lambda v: v["tables"]["mlm"].update(experiments=["iwslt"]), "tables.mlm.experiments: unknown experiment 'iwslt'; did you mean 'iwslt14'?"),
        (lambda v: v["tables"]["mlm"].update(experiments=["paper"]), "tables.mlm.experiments: unknown experiment 'paper'"),
        (lambda v: v["tables"]["glue"].update(benchmark="glu"), "tables.glue.benchmark: unknown benchmark 'glu'; did you mean 'glue'?"),
        (lambda v: v["tables"]["glue"].update(tasks=["rt"]), "tables.glue.tasks: unknown task 'rt'; did you mean 'rte'?"),
        (lambda v: v["tables"]["mlm"].update(tasks=["rte"]), "tables.mlm: tasks need a benchmark"),
        (lambda v: v["tables"]["glue"].update(systems=["grammar"]), "tables.glue.systems: system 'grammar' cannot be a RoBERTa, which takes guide `none`, `sla`, `syntax`, or `grammar` with bpe: none"),
        (lambda v: v["experiments"]["demo"].update(systems=["sla"]), "experiments.demo.systems: system 'sla' on corpus 'demo': guide 'sla' is made for RoBERTa; give one that guides translation"),
        (lambda v: v["systems"]["roberta-mlm"].update(mlm_weight="corpus"), "tables.glue-mlm.systems: system 'roberta-mlm' has mlm_weight: corpus; a benchmark has none, give a number"),
        (lambda v: v["tables"]["glue"].update(experiments=["demo"]), "tables.glue: give either `experiments` or `benchmark`"),
        (lambda v: v["tables"]["mlm"].update(metric=["chrf"]), "tables.mlm.metric: unknown key 'metric'; did you mean 'metrics'?"),
        (lambda v: v["tables"].update(demo=v["tables"]["mlm"]), "tables.demo: another target, or the table"),
        (lambda v: v["tables"].update({"demo-parsing": v["tables"]["mlm"]}), "tables.demo-parsing: another target, or the table of its trees"),
        (lambda v: v["experiments"]["iwslt14"].update(peers=["pascl"]), "experiments.iwslt14.peers: unknown published system 'pascl'; did you mean 'pascal'?"),
        (lambda v: v["experiments"]["iwslt14"].update(peers=["grammar"]), "experiments.iwslt14.peers: 'grammar' is among the systems; leave it out of one"),
        (lambda v: v["experiments"]["paper"].append("gleu"), "experiments.paper: unknown experiment 'gleu'; did you mean 'glue'?"),
        (lambda v: v.update(published="nowhere.yaml"), "published: nowhere.yaml: no such file"),
        (lambda v: v.update(partial="maybe"), "partial: must be true or false"),
    ],
)  # fmt: skip
def test_faults_are_one_line(values, change, message):
    change(values)
    with pytest.raises(UserError) as error:
        load(values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_systems_that_read_words_need_a_parser_of_english(values):
    del values["corenlp"]["languages"]["en"]
    values["experiments"] = {"demo": values["experiments"]["demo"]}
    values["tables"] = {"glue-mlm": values["tables"]["glue-mlm"], "nlu-demo": values["tables"]["nlu-demo"]}
    load(values)  # generated tasks have gold parses
    values["tables"]["glue-mlm"]["systems"] = ["roberta", "sla"]
    message = (
        r"tables\.glue-mlm\.systems: a system here reads a parser's words, and corenlp\.languages has no 'en'"
    )
    with pytest.raises(UserError, match=message):
        load(values)
