"""Verbs that make tables, figures and pages."""

from pathlib import Path

from synmask.pipeline.cli.options import Figure, Json, Labels, Some, labels_of, together
from synmask.pipeline.config import read_published
from synmask.pipeline.config.base import Line
from synmask.pipeline.config.table_plan import Plan
from synmask.pipeline.files import UserError
from synmask.pipeline.reporting.page_plan import PagePlan


def table(
    *,
    plan: Json[Plan],
    published: Path,
    scores: tuple[Path, ...],
    parses: tuple[Path, ...],
    tasks: tuple[Path, ...] = (),
    output: Path,
) -> None:
    """Make a table from the given runs: CSV, Markdown and LaTeX.

    It shows published numbers, mean and standard deviation over seeds, and significance.

    Args:
        plan: Rows, columns and the runs that the table needs.
        published: published.yaml.
        scores: scores.json of the runs; sentences.csv beside each, if it exists, for tests.
        parses: parse.json of the runs.
        tasks: scores.json and baselines.json of tasks of language understanding; examples.csv likewise.
        output: Prefix of .csv, .runs.csv, .md and .tex.
    """
    from synmask.pipeline.reporting.tables import write_table

    write_table(plan, read_published(published), scores, parses, tasks, output)


def parse_table(
    *,
    inputs: Some[Path],
    counts: Some[Path],
    output: Path,
    title: Line,
    labels: Labels,
    directions: Some[str],
) -> None:
    """Make tables of parsing scores, one per protocol: CSV, Markdown and LaTeX.

    They show systems and trivial trees, mean and standard deviation over seeds, and significance.

    Args:
        inputs: parse.json of the runs.
        counts: parse_counts.json of the runs, in the same order.
        output: Prefix of .csv, .md and .tex.
        title: Heading of the tables.
        directions: The directions in order.
    """
    from synmask.pipeline.reporting.parse_tables import write_parse_table

    together(inputs=inputs, counts=counts)
    write_parse_table(inputs, counts, output, title=title, systems=dict(labels), directions=directions)


def curves(*, inputs: Some[Path], runs: Json[list[tuple[str, int]]], labels: Labels, output: Figure) -> None:
    """Plot training and validation loss by epoch.

    Args:
        inputs: history.csv of the runs.
        runs: System and seed of each input, as a JSON list of pairs.
    """
    from synmask.pipeline.reporting.figures import curves

    histories = dict(together(runs=runs, inputs=inputs))
    curves(histories, output, labels_of((system for system, _ in histories), labels))


def distribution_figure(*, distribution: Path, title: Line, output: Figure) -> None:
    """Draw P_D of one sentence as a heat map.

    Args:
        distribution: Output of `parse`.
        title: Heading of the figure.
    """
    from synmask.pipeline.reporting.figures import distribution as draw
    from synmask.pipeline.syntax.parses import read_distribution

    shown = read_distribution(distribution)
    if not shown.tokens:
        raise UserError(f"{distribution}: no P_D in it; give that of a guide that induces one")
    draw(shown.tokens, shown.distribution, output, title)


def report(*, plan: Json[PagePlan], captions: Path, output: Path) -> None:
    """Write the report: tables, figures, trees, translations and runs on one page.

    The page needs no network and lists what is missing. For a page on the results that exist:
    `snakemake results/report.html --config partial=true`

    Args:
        plan: Its contents: see `snakemake -np results/report.html`.
        captions: Folder of the figures' captions, NAME.rst for each.
        output: The HTML file, in the folder of the results.
    """
    from synmask.pipeline.reporting.report import write_report

    write_report(plan, output, captions=captions)


def tensorboard(runs: Some[Path], /, *, logdir: Path) -> None:
    """Write the losses and scores of training runs by update as event files for TensorBoard.

    For example: `synmask tensorboard results/demo/de-en/*/seed* --logdir curves`; look at it with
    `tensorboard --logdir curves`. Of a run that is still training it writes the epochs that are done.

    Args:
        runs: Folders with a history.csv: of training, pre-training or fine-tuning.
        logdir: Folder for the event files; a run keeps its path below results/.
    """
    from synmask.pipeline.reporting.tensorboard import write_events

    write_events(runs, logdir)
