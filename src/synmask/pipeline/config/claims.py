"""The types of claims.yaml: claims of a paper, to be tested as contrasts between runs."""

from typing import Literal

from pydantic import Field, model_validator

from synmask.pipeline.config.base import Distinct, Line, Name, Section, SystemName
from synmask.pipeline.config.faults import check_known
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
    """Check that the experiments of claims are there, on their corpus, and run the systems that they compare.

    Raises:
        Fault: an experiment or a system is not there, or on another corpus.
    """
    known = {n: one for n, one in config.plain_experiments.items() if one.corpus == claims.corpus}
    for name in claims.experiments:
        check_known(("experiments",), f"experiment on {claims.corpus},", name, known)
    run = {system for name in claims.experiments for system in known[name].systems}
    for number, claim in enumerate(claims.claims):
        for place, contrast in enumerate(claim.contrasts):
            for key in ("system", "baseline"):
                if (name := getattr(contrast, key)) is not None:
                    path = ("claims", number, "contrasts", place, key)
                    check_known(path, "system of the claims' experiments,", name, run)
