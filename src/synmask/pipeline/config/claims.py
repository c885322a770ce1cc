"""The types of claims.yaml: claims of a paper, to be tested as contrasts between runs."""

from typing import Literal

from pydantic import Field, model_validator

from synmask.pipeline.config.base import Distinct, Line, Name, Section, SystemName
from synmask.pipeline.config.faults import Fault, check_known
from synmask.pipeline.config.schema import Config

OF_TRANSLATIONS = ("sacrebleu", "perplexity")  # metrics of the test set
OF_HEADS = {  # metrics of heads.json: what knows nothing of the parser → the row that does
    "attachment": {"best rule": "induced"},
    "probe": {"position": "position and parser", "position and length": "position, length and parser"},
}


class Contrast(Section):
    """A system against another, or against trees that need no parser.

    Attributes:
        trivial: a row of parse.json, such as right-branching, or of heads.json.
        gain: the difference between the paper's numbers, by direction.
    """

    system: SystemName
    baseline: SystemName | None = None
    trivial: Line | None = None
    metric: Literal["sacrebleu", "perplexity", "f1_words", "f1_paper", "attachment", "probe"]
    gain: dict[Line, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _against_one(self) -> "Contrast":
        if (self.baseline is None) == (self.trivial is None):
            raise ValueError("give either a baseline or trivial trees")
        if self.trivial is not None and self.metric in OF_TRANSLATIONS:
            raise ValueError("trivial trees have no sacreBLEU or perplexity; give f1_words or f1_paper")
        if self.probed and self.trivial not in OF_HEADS[self.metric]:
            raise ValueError(f"{self.metric}: give as trivial {' or '.join(OF_HEADS[self.metric])}")
        return self

    @property
    def probed(self) -> bool:
        """Whether it is about heads (`synmask probe`)."""
        return self.metric in OF_HEADS

    @property
    def own_row(self) -> str:
        """The row of parse.json or heads.json that is compared with the rival's."""
        return OF_HEADS[self.metric][self.rival] if self.probed else "induced"

    @property
    def rival(self) -> str:
        return self.baseline or self.trivial or ""


class Claim(Section):
    name: Line
    claim: Line
    refuted: Line
    contrasts: Distinct[Contrast] = Field(min_length=1)


class Claims(Section):
    """The claims, and the corpus and experiments whose runs decide them."""

    corpus: Name
    experiments: Distinct[Name] = Field(min_length=1)
    claims: Distinct[Claim] = Field(min_length=1)


def check_claims(config: Config, claims: Claims) -> None:
    """Check that the experiments of claims have all runs that their contrasts compare.

    Raises:
        Fault: an experiment or a system is not there, or a system or the corpus lacks trees or heads.
    """
    for name in claims.experiments:
        if name in config.experiments and name not in config.plain_experiments:
            raise Fault(("experiments",), f"{name!r} is a list of experiments; name these")
        check_known(("experiments",), "experiment", name, config.plain_experiments)
        if (corpus := config.plain_experiments[name].corpus) != claims.corpus:
            what = f"{name!r} is on corpus {corpus!r}, the claims on {claims.corpus!r}"
            raise Fault(("experiments",), f"{what}; name another")
    for number, claim in enumerate(claims.claims):
        for place, contrast in enumerate(claim.contrasts):
            _check_contrast(config, claims, contrast, ("claims", number, "contrasts", place))


def _check_contrast(config: Config, claims: Claims, contrast: Contrast, path: tuple) -> None:
    experiments = [config.plain_experiments[name] for name in claims.experiments]
    run = {system for experiment in experiments for system in experiment.systems}
    sides = {key: name for key in ("system", "baseline") if (name := getattr(contrast, key)) is not None}
    for key, name in sides.items():
        check_known((*path, key), "system of the claims' experiments,", name, run)
    if contrast.metric in OF_TRANSLATIONS:
        return
    kind, gold = ("heads", config.gold_heads) if contrast.probed else ("trees", config.gold_trees)
    inducing = config.inducing(run, "heads" if contrast.probed else "distances")
    if lacking := [name for name in sides.values() if name not in inducing]:
        raise Fault((*path, "metric"), f"system {lacking[0]!r} induces no {kind}")
    for direction in (direction for experiment in experiments for direction in experiment.directions):
        source = direction.split("-")[0]
        if gold(claims.corpus, "valid", source) is None:
            raise Fault((*path, "metric"), f"corpus {claims.corpus!r} has no gold {kind} of {source}")
