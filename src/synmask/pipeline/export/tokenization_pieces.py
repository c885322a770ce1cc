"""The tokenizer of an exported translation model with sentencepiece's pieces; see tokenization_moses.py."""

from pathlib import Path
from typing import Any

from transformers import FSMTTokenizer

from synmask.pipeline.export.tokenization_moses import MosesTokenizer
from synmask.pipeline.languages import BLANK
from synmask.pipeline.text.notation import join_subwords
from synmask.pipeline.text.spm import SentencePieceSplitter


class PiecesTokenizer(MosesTokenizer):
    """FSMT's tokenizer with pieces of raw text, or of Moses' tokens."""

    vocab_files_names = FSMTTokenizer.vocab_files_names | {
        "source_spm": "source.spm",
        "target_spm": "target.spm",
    }

    def __init__(
        self, *args: Any, source_spm: str, target_spm: str, tokenisers: tuple[str, str], **kwargs: Any
    ) -> None:
        self.models = {
            "source.spm": Path(source_spm).read_bytes(),
            "target.spm": Path(target_spm).read_bytes(),
        }
        self.tokenisers = tokenisers
        self.splitters = [*map(SentencePieceSplitter, self.models.values(), tokenisers)]
        super().__init__(*args, tokenisers=tokenisers, **kwargs)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        line = " ".join(text.split())
        if self.tokenisers[self.reads_target] == "moses":
            line = self.moses_tokens(line)
        elif self.tokenisers[self.reads_target] == "char":
            line = line.replace(" ", BLANK)
        symbols = self.splitters[self.reads_target](line.lower() if self.do_lower_case else line).split()
        return [symbol[:-2] if symbol.endswith("@@") else f"{symbol}</w>" for symbol in symbols]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        symbols = [token[:-4] if token.endswith("</w>") else f"{token}@@" for token in tokens]
        line = join_subwords(self.splitters[1].as_bpe(" ".join(symbols)))
        if self.tokenisers[1] == "moses":
            return self.moses_detokenize(line.split(), self.tgt_lang)
        return line.replace(" ", "").replace(BLANK, " ").strip() if self.tokenisers[1] == "char" else line

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        paths = [Path(save_directory, f"{filename_prefix or ''}{name}") for name in self.models]
        for path, model in zip(paths, self.models.values(), strict=True):
            path.write_bytes(model)
        return *super().save_vocabulary(save_directory, filename_prefix), *map(str, paths)
