"""The verbs of `synmask`: where the function of each is, whose signature and docstring are its command line.

A verb's module is imported when it runs; what it imports is the code behind the verb
(workflow/sources.py).
"""

PEOPLE = {
    "plan": "cli.plan:plan",
    "doctor": "cli.doctor:doctor",
    "new-corpus": "cli.new_corpus:new_corpus",
    "translate": "cli.translate:translate",
    "tree": "cli.trees:tree",
    "parse": "translation.parse:parse",
    "parseval": "reporting.score_trees:parseval",
    "score": "reporting.score_text:score",
    "compare": "reporting.compare:compare",
    "export": "cli.export:export",
    "report": "reporting.report:write_report",
    "settings": "cli.settings:settings",
}
STEPS = {
    "Corpora": {
        "download": "corpora.download:fetch",
        "prepare": "corpora.prepare:prepare",
        "text": "corpora.pair:write_text",
        "constituency": "syntax.corenlp:parse_file",
    },
    "Text": {
        "tokenise": "text.tokenise:tokenise_file",
        "subwords": "training.subwords:write_subwords",
        "annotate": "syntax.annotations:annotate_file",
        "templates": "training.templates:write_templates",
    },
    "Training": {  # `TRAINING_VERBS` of __main__
        "train": "translation.train:train",
        "pretrain": "roberta.pretrain:pretrain",
        "continue-pretraining": "roberta.continued:continue_pretraining",
        "finetune": "roberta.finetune:finetune",
    },
    "Translation": {
        "average": "translation.average:average_run",
        "predict-templates": "translation.decode:predict_templates",
        "decode": "translation.decode:decode_files",
    },
    "Language understanding": {
        "glue": "corpora.glue:write_part",
        "convert-roberta": "roberta.huggingface:convert_huggingface",
        "pretraining-text": "roberta.pretraining_text:write_pretraining_text",
        "encode-parses": "roberta.encode:encode_parses",
        "encode-task": "roberta.encode:encode_task",
        "task-sentences": "corpora.task_sentences:write_sentences",
        "annotate-task": "roberta.encode:annotate_task",
        "predict": "roberta.predict:predict",
        "nlu-score": "evaluation.score_tasks:nlu_score",
        "nlu-baselines": "evaluation.score_tasks:nlu_baselines",
        "glue-submission": "evaluation.submission:write_submission",
    },
    "Tests and tables": {
        "score-run": "evaluation.score_run:score_run",
        "measure": "evaluation.measure:measure",
        "table": "reporting.tables:write_table",
        "parse-table": "reporting.parse_tables:write_parse_table",
    },
    "Figures": {
        "curves": "reporting.figures:curves_figure",
        "sweep-figure": "reporting.figures:sweep_figure",
        "distribution-figure": "reporting.figures:distribution_figure",
        "tree-page": "reporting.tree_page:tree_page",
    },
}
VERBS = PEOPLE | {verb: place for group in STEPS.values() for verb, place in group.items()}


def module_of(verb: str) -> str:
    """The module of a verb's function.

    Raises:
        ValueError: there is no such verb.
    """
    if verb not in VERBS:
        raise ValueError(f"{verb}: no such verb in synmask/pipeline/verbs.py")
    return f"synmask.pipeline.{VERBS[verb].partition(':')[0]}"
