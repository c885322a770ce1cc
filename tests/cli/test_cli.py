import contextlib
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from synmask.__main__ import TRAINING_VERBS
from synmask.pipeline.cli import app, main
from synmask.pipeline.cli.trees import as_utf8
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.config.schema import as_json
from synmask.pipeline.errors import UserError
from synmask.pipeline.runs import Run
from synmask.pipeline.verbs import PEOPLE, STEPS, VERBS, module_of
from synmask.pipeline.workflow.hours import Estimator, total

ROOT = Path(__file__).parents[2]
SETTINGS = as_json(load(read_all(project_files(ROOT))).run_settings("demo", "de-en", "grammar"))


def synmask(*words):
    """Call a verb in this process; the result holds `returncode`, `stdout` and `stderr`."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*map(str, words)])
        except SystemExit as end:
            code = end.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


@pytest.fixture(scope="module")
def verbs():
    """Name → the verb's command line."""
    commands = app().resolved_commands()
    return {name: commands[name] for name in VERBS}


def listed(*words):
    """Verb → its line in a list of verbs."""
    lines = synmask(*words).stdout.splitlines()
    return {line[2:].split()[0]: line for line in lines if line.startswith("│ ") and line[2] != " "}


@pytest.mark.parametrize(("word", "shown"), [("--help", PEOPLE), ("steps", VERBS.keys() - PEOPLE.keys())])
def test_people_and_the_workflow_have_a_list_of_verbs_each_with_a_sentence(word, shown):
    lines = listed(word)
    assert {*lines} & {*VERBS} == {*shown}
    assert all(len(lines[verb].removeprefix(f"│ {verb}").strip(" │")) > 20 for verb in shown)


def test_signals_stop_all_trainings_where_they_can_go_on():
    assert set(TRAINING_VERBS) == STEPS["Training"].keys()


def test_a_list_of_verbs_imports_none_of_them():
    code = "import sys; from synmask.pipeline.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    for word in ("--help", "steps"):
        done = subprocess.run([sys.executable, "-c", code, word], capture_output=True, text=True, check=True)
        assert not {*map(module_of, VERBS)} & {*done.stdout.split()}, word


def test_help_on_a_verb_is_its_help():
    assert synmask("help", "text").stdout == synmask("text", "--help").stdout != synmask("help").stdout
    assert synmask("help").stdout == synmask("--help").stdout == synmask().stdout


def test_every_option_is_explained(verbs):
    for name, verb in verbs.items():
        for argument in verb.assemble_argument_collection(parse_docstring=True):
            grouped = argument.name == "*"  # options of a dataclass; they follow
            assert grouped or argument.parameter.help, f"{name} {argument.name}"


def test_verbs_for_people_show_an_example(verbs):
    for name in (
        "plan",
        "translate",
        "tree",
        "parse",
        "parseval",
        "score",
        "export",
        "settings",
    ):
        assert f"`synmask {name} " in verbs[name].help or f"| synmask {name} " in verbs[name].help, name


def test_every_rule_calls_a_verb_with_options_that_it_has(verbs):
    seen = set()
    common = (ROOT / "workflow/rules/common.smk").read_text()
    of_trainings = re.search(r"^def train_command\(.*?return (\(.*?\n    \))\n", common, re.M | re.S)[1]
    for path in ROOT.glob("workflow/rules/*.smk"):
        for lines in re.findall(r"shell:\n((?: {8}.*\n)+)", path.read_text()):
            lines += of_trainings * ("train_command(" in lines)
            command = "".join(re.findall(r'"(.*)"', lines))
            name = re.search(r"synmask ([a-z0-9-]+) ", command)[1]
            options = {each.name: each for each in verbs[name].assemble_argument_collection()}
            given = set(re.findall(r"(?<= )--[a-z0-9-]+", command))
            assert given <= {*options}, f"{path}: {name}: {given - {*options}}"
            seen.add(name)
    assert len(seen) > 35


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\n?", synmask("--version").stdout)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_whatever_the_locale_what_is_written_is_utf_8(tmp_path, encoding):
    (tmp_path / "gold").write_text("(S (ÜP (N a) (N b)) (V c))\n", encoding="utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "synmask", "parseval", tmp_path / "gold", tmp_path / "gold"]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", env=os.environ | locale, check=False
    )
    assert re.search(r"^ÜP  ", done.stdout, re.M), done.stderr


@pytest.mark.parametrize("given", ["Löwe", "Löwe".encode().decode("latin-1"), os.fsdecode("Löwe".encode())])
def test_a_sentence_of_the_command_line_is_utf_8(given, monkeypatch):
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("latin-1" if "Ã" in given else "utf-8"))
    assert as_utf8(given) == "Löwe"
    with pytest.raises(UserError, match="the sentence is not UTF-8"):
        as_utf8("L\udcf6we")


def test_a_verb_that_does_not_exist_is_answered_with_the_nearest():
    done = synmask("trian")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "synmask trian: no such verb; did you mean 'train'?\n"
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["text", "--name", "x", "--source", "de", "--target", "en", "--splits", "train", "valid", "test", "--source-in", "a", "b", "c",
          "--target-in", "d", "e", "f", "--output", "o", "--settings", "{}"], "a: no such file"),
        (["settings", "--corpus", "iwslt14", "--direction", "de-en", "--system", "sla"], "systems.sla: guide 'sla' is made for RoBERTa"),
        (["settings", "--corpus", "iwslt14", "--direction", "de-fr", "--system", "grammar"], "no direction 'de-fr' of iwslt14; did you mean 'de-en'?"),
        (["settings", "--corpus", "demoo", "--direction", "de-en", "--system", "grammar"], "no 'demoo' among the corpora"),
        (["average", "--run", "x", "--data", "y", "--codes", "nowhere", "--vocabulary", "z", "--vocabulary-threshold", "0",
          "--tokenisers", "moses", "moses", "--output", "o"], "nowhere: no such file"),
        (["tree", "--system", "gramar", "ja"], "no 'gramar' among the systems; did you mean 'grammar'?"),
        (["tree", "--system", "grammar", "--corpus", "dem", "ja"], "no 'dem' among the corpora; did you mean 'demo'?"),
        (["tree", "--system", "grammar", "--seed", "99", "ja"], "demo/de-en/grammar/seed99/average.pt: no such file; make it"),
        (["tree", "--system", "grammar", "--direction", "de-fr", "ja"], "no experiment with this corpus and direction"),
        (["tree", "--system", "grammar"], "give either a sentence"),
        (["tree", "ja"], "give either --system"),
    ],
)  # fmt: skip
def test_a_users_error_is_one_line_and_exit_code_1(words, message):
    done = synmask(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"synmask {words[0]}: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_settings_that_do_not_fit_name_file_and_key(tmp_path):
    (tmp_path / "mine.yaml").write_text("systems: {x: {training: {checkpoint: best-bleu}}}\n")
    run = ["--corpus", "demo", "--direction", "de-en", "--system", "x"]
    done = synmask("settings", *run, "--configfile", tmp_path / "mine.yaml")
    fault = "systems.x.training.checkpoint: best-bleu needs a validate_bleu above 0"
    assert done.stderr == f"synmask settings: {tmp_path}/mine.yaml, line 1: {fault}\n"


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "file").write_text("")
    words = ["tokenise", "--input", tmp_path / "in", "--language", "en", "--settings", "{}"]
    done = synmask(*words, "--output", tmp_path / "file/out")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_settings_are_the_workflows():
    done = synmask("settings", "--corpus", "demo", "--direction", "de-en", "--system", "grammar")
    assert done.stdout == SETTINGS + "\n"


@pytest.mark.parametrize(
    ("system", "setting", "row"),
    [
        ("grammar", "text.lowercase", "true {config/corpora.yaml}: corpora.iwslt14.text.lowercase"),
        ("grammar", "training.lr", "0.0005 {config.yaml}: training.lr"),
        ("grammar", "system.options.bpe_dim", "64 {FILE}, line 2: systems.grammar.options.bpe_dim"),
        ("grammar", "system.options.layers", "3 {FILE}, line 3: corpora.iwslt14.options.grammar.de-en.layers"),
        ("grammar", "system.mlm_weight", "0.47 {config.yaml}: training.mlm_weight"),
        ("grammar", "system.left_pad_source", "false default"),
        ("grammar", "model.heads", "4 default"),
        ("grammar-mlm-weight-0.1", "system.mlm_weight", "0.1 {config/sweeps.yaml}: experiments.sweep-mlm-weight-iwslt14.sweep"),
        ("grammar-mlm-weight-0.1", "system.options.bpe_dim", "64 {FILE}, line 2: systems.grammar.options.bpe_dim"),
    ],
)  # fmt: skip
def test_settings_say_where_each_value_comes_from(tmp_path, monkeypatch, capsys, system, setting, row):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "systems:\n grammar: {options: {bpe_dim: 64}}\n"
        "corpora: {iwslt14: {options: {grammar: {de-en: {layers: 3}}}}}\n"
    )
    monkeypatch.chdir(ROOT)
    words = ["--corpus", "iwslt14", "--direction", "de-en", "--system", system]
    with contextlib.suppress(SystemExit):
        main(["settings", *words, "--configfile", str(file), "--places"])
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    value, place = row.replace("{FILE}", str(file)).split(maxsplit=1)
    place = re.escape(place).replace(r"\{", "").replace(r"\}", r", line \d+")
    assert re.fullmatch(rf"{value} +{place}", rows[setting])


def test_a_sentence_without_quotes_is_told_to_have_them():
    done = synmask("tree", "--model", "average.pt", "Der", "Arzt", "sieht")
    assert done.returncode == 2
    assert done.stderr.startswith("synmask tree: unexpected: 'Arzt', 'sieht'; ")
    assert done.stderr.endswith("put a text of several words in quotes\n")
    for words in (["tree", "average.pt", "Der Arzt sieht"], ["parse", "--model", "average.pt", __file__]):
        done = synmask(*words)
        assert done.stderr.endswith("; see --help for the option that each file and text belongs to\n")


def test_two_models_of_one_folder_are_two_trees(tmp_path, monkeypatch, capsys):
    row = {"tokens": ["ja", "."], "distances": [1.0], "eos_distance": 2.0}
    monkeypatch.setattr("synmask.pipeline.translation.parse.parse_text", lambda *args, **kwargs: [row])
    monkeypatch.chdir(tmp_path)
    main(["tree", "--model", "average.pt", "--model", "other.pt", "--model", "seed1/average.pt", "ja."])
    heads = [
        line for line in capsys.readouterr().out.splitlines() if line in {"average.pt", "other.pt", "seed1"}
    ]
    assert heads == ["average.pt", "other.pt", "seed1"]


def test_a_language_is_a_code(tmp_path):
    """JA or japanese would be scored with English's tokeniser."""
    (tmp_path / "a").write_text("a b c d\n")
    done = synmask("score", tmp_path / "a", tmp_path / "a", "--language", "JA")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--language: must be a language code of two or three lower-case letters" in done.stderr


def test_own_files_lie_over_the_configuration(tmp_path):
    """As for Snakemake: a system of one's own has no corpus in its file."""
    (tmp_path / "mine.yaml").write_text("systems: {mine: {guide: grammar}}")
    (tmp_path / "more.yaml").write_text("systems: {mine: {options: {layers: 2}}}")
    one, other = str(tmp_path / "mine.yaml"), str(tmp_path / "more.yaml")
    words = ["--corpus", "demo", "--direction", "de-en", "--system", "mine"]
    done = synmask("settings", *words, "--configfile", one, other)
    assert json.loads(done.stdout)["system"]["options"]["layers"] == 2
    done = synmask("tree", "--system", "mine", "--configfile", one, "--configfile", other, "ja")
    model = "results/demo/de-en/mine/seed1/average.pt"
    assert done.stderr.endswith(
        f"{model}: no such file; make it with: snakemake {model} --configfile {one} {other}\n"
    )


def plan(capsys, *words):
    """Run `synmask plan` in this process, and return its output."""
    with contextlib.suppress(SystemExit):
        main(["plan", *words])
    return capsys.readouterr()


def test_a_corpus_of_ones_own_is_planned_as_the_docs_say(capsys, tmp_path, monkeypatch):
    example = re.search(
        r"```yaml\n(corpora:\n  mine:.*?)```", (ROOT / "docs/extending.md").read_text(), re.S
    )[1]
    (tmp_path / "mine.yaml").write_text(example.replace('"mine/', f'"{tmp_path}/'))
    with gzip.open(tmp_path / "train.en.gz", "wt") as text:
        text.write("a\n" * 1000)
    monkeypatch.chdir(ROOT)
    message = {
        plan(capsys, *words).out
        for words in (
            ["--configfile", str(tmp_path / "mine.yaml"), "mine"],
            ["mine", "--configfile", str(tmp_path / "mine.yaml")],
        )
    }
    assert len(message) == 1
    [message] = message
    rows = {line.split()[0]: line.split()[1:] for line in message.splitlines() if line.startswith("mine/")}
    assert {*rows} == {
        f"mine/{direction}/{system}"
        for direction in ("de-en", "en-de")
        for system in ("transformer", "grammar")
    }
    assert all(row[0] == "3" for row in rows.values())
    unknown = "the size of the text is not known, so that mine/en-de/transformer, mine/en-de/grammar have"
    assert unknown in message  # train.de.gz is not there
    assert all(("?" in row) == ("/en-de/" in run) for run, row in rows.items())


def test_a_plan_says_the_hours_on_some_gpus(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    output = plan(capsys, "iwslt14-core", "--gpus", "8").out
    assert "?" not in output
    found = re.findall(r"^hours +about (.*?) of training on (.*?), ", output, re.M)
    units = {"d": 24, "h": 1, "min": 1 / 60}

    def hours(words):  # "4 d 15 h"
        return sum(float(count) * units[unit] for count, unit in re.findall(r"(\d+) (\w+)", words))

    (one, first), (several, second) = found
    assert (first, second) == ("one GPU", "8 GPUs")
    assert 0.95 * hours(one) / 8 <= hours(several) <= 1.3 * hours(one) / 8


def test_a_plan_and_a_dry_run_say_the_same_hours(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    output = plan(capsys, "multi30k-small").out
    trainings = [Run("multi30k-small", "de", "en", system, 1) for system in ("transformer", "grammar")]
    config = load(read_all(project_files()))
    assert total(map(Estimator(config).hours, trainings)) in output


def test_a_plan_outside_a_checkout_says_where_to_go(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = plan(capsys, "demo").err
    assert "no config.yaml here; cd into the top folder of your checkout" in output
    assert output.count("\n") == 1


def test_all_is_a_name_of_the_targets_to_plan(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert plan(capsys, "all").out == plan(capsys).out != ""


def test_a_target_to_plan_that_does_not_exist_is_answered_with_the_nearest(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert "did you mean 'multi30k'?" in plan(capsys, "multi30").err


def test_verbs_on_text_start_without_torch():
    code = (
        "import sys, synmask.pipeline.cli, synmask.pipeline.text.tokenise, synmask.pipeline.text.bpe, "
        "synmask.pipeline.reporting.tables, synmask.pipeline.evaluation.parseval; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tree-page", "--gold", "g", "--trees", "a", "b", "--labels", "x", "x", "--title", "t", "--output", "o"], "--labels x x: give each of --trees a different label"),
        (["tree-page", "--gold", "g", "--trees", "a", "--labels", "gold", "--title", "t", "--output", "o"], "--labels gold: give each of --trees a different label"),
        (["curves", "--inputs", "a", "--labels", '[["a", "x"], ["b", "x"]]', "--output", "o"], "two systems have the same label"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)  # fmt: skip
def test_what_would_hide_another_is_refused(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code in (1, 2)
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("folder", "words", "message"),
    [
        (ROOT, ["tree", "--system", "gramar", "ja"], "config.yaml: no 'gramar' among the systems; did you mean 'grammar'?"),
        (ROOT, ["tree", "--system", "xyz", "ja"], "no 'xyz' among the systems; known: "),
        (ROOT, ["tree", "--system", "grammar", "--corpus", "multi30", "ja"], "did you mean 'multi30k'?"),
        (ROOT, ["settings", "--corpus", "demo", "--direction", "de-en", "--system", "gramar"], "did you mean 'grammar'?"),
        (None, ["tree", "--system", "grammar", "ja"], ": no config.yaml here; cd into the top folder of your checkout"),
        (None, ["tree", "--model", "a.pt", "--output", "t.xyz", "ja"], "synmask tree: t.xyz: the figure is an SVG; give a name that ends in .svg"),
        (ROOT, ["tree", "--model", "demo", "README.md"], "README.md: a file; give a sentence, or the file to `synmask parse --input`"),
        (None, ["tree", "--model", "demo", "--number", "5"], "--number need --system; leave them out with --model"),
        (None, ["tree", "--model", "demo", "--seed", "1", "ja"], "--seed, --corpus, --direction and --number need --system; leave"),
        (None, ["tree", "--model", "demo", "--direction", "en-de", "ja"], "--corpus, --direction and --number need --system; leave them out with --model"),
        (None, ["export", "best.pt", "--weights", "w", "--format", "ctranslate2", "--output", "o"], "--format ctranslate2: for models of translation; leave it out"),
        (None, ["compare", "r", "--system", "a", "b", "--system", "c", "d", "--train", "t"], "--train: rare words are on the page alone; give --output, too"),
        (None, ["tree", "--model", "demo", "--configfile", "nope.yaml", "ja"], "nope.yaml: No such file"),
        (None, ["translate", "demo", "--configfile", "nope.yaml"], "nope.yaml: No such file"),
    ],
)  # fmt: skip
def test_what_people_type_is_answered_with_what_helps(capsys, tmp_path, monkeypatch, folder, words, message):
    monkeypatch.chdir(folder or tmp_path)
    with pytest.raises(SystemExit):
        main(words)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert len(error) < 200


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The folder of a run in a project."""
    shutil.copy(ROOT / "config.yaml", tmp_path)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    run = tmp_path / "results/demo/de-en/grammar/seed1"
    run.mkdir(parents=True)
    (run / "average.pt").touch()
    monkeypatch.chdir(tmp_path)
    return run


def test_trees_that_are_not_there_or_another_runs_are_not_drawn(capsys, run):
    with pytest.raises(SystemExit):
        main(["tree", "--system", "grammar", "--number", "5"])
    assert "make it with: snakemake results/demo/de-en/grammar/seed1/trees.jsonl\n" in capsys.readouterr().err
    other = {"corpus": "demo", "direction": "de-en", "system": "grammar", "seed": 2}
    (run / "trees.json").write_text(json.dumps({"run": other}))
    (run / "trees.jsonl").write_text('{"tokens": ["a"], "distances": [], "eos_distance": 1}\n')
    with pytest.raises(SystemExit):
        main(["tree", "--system", "grammar", "--number", "1"])
    assert "seed1/trees.json: of another run (seed 2, here 1)" in capsys.readouterr().err


def test_a_tree_that_ties_decided_says_so(capsys, run):
    row = {"tokens": [*"abcd"], "distances": [1.0, 1.0, 1.0], "eos_distance": 2.0}
    (run / "trees.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row | {'distances': [3, 2, 1]})}\n")
    main(["tree", "--system", "grammar", "--number", "1"])
    assert capsys.readouterr().err == "Grammar: 2 of 3 splits are ties, decided for the first\n"
    main(["tree", "--system", "grammar", "--number", "2"])
    assert capsys.readouterr().err == ""


def test_the_installation_of_completion_says_what_it_writes():
    assert "line into ~/.bashrc or ~/.zshrc" in " ".join(synmask("--help").stdout.replace("│", "").split())
    with pytest.raises(UserError, match="the sentence is not UTF-8"):
        as_utf8("L\udcf6we")
