"""From raw text to tokens: the settings of a job."""

from synmask.pipeline.config import base
from synmask.pipeline.config.base import key
from synmask.pipeline.errors import UserError
from synmask.pipeline.languages import default_tokeniser


class Tokens(base.Section):
    """From raw text to tokens."""

    tokeniser: base.Tokeniser | dict[base.Language, base.Tokeniser] | None = key(
        "of all languages, or of each (docs/corpora.md); default: by the language's script", None
    )
    lowercase: bool = key("train and score in lower case", False)

    def tokeniser_of(self, language: str) -> str:
        """The tokeniser of one language.

        Raises:
            UserError: this language has none.
        """
        if self.tokeniser is None:
            return default_tokeniser(language)[0]
        if isinstance(self.tokeniser, str):
            return self.tokeniser
        if language not in self.tokeniser:
            raise UserError(f"no tokeniser for {language!r}; only for {', '.join(self.tokeniser)}")
        return self.tokeniser[language]


class ModelText(Tokens):
    """How raw text becomes a model's input; stands in each model file."""

    source: base.Language
    target: base.Language
    codes: str  # the contents of the file of BPE codes, or of sentencepiece's models
    vocabulary: list[str] | None  # the allowed sub-words; None: all
