"""The tokenizer of an exported translation model; `synmask export` copies this file into the model's folder.

`AutoTokenizer.from_pretrained(FOLDER, trust_remote_code=True)` runs the copy. It needs transformers and
sacremoses, but not synmask: `synmask.pipeline.text.moses` goes along as a copy, too.
"""

import re
from functools import cached_property
from typing import Any

from transformers import FSMTTokenizer

from synmask.pipeline.text.moses import Detokenizer, Tokenizer


class MosesTokenizer(FSMTTokenizer):
    """FSMT's tokenizer with Moses' plain tokenisation.

    FSMT's own tokenizer normalises punctuation and splits at hyphens; the model has never seen such text.
    """

    reads_target = False  # whether the text is a translation (`text_target`), which becomes labels

    def _switch_to_target_mode(self) -> None:  # transformers calls both, FSMT's tokenizer has neither
        self.reads_target = True

    def _switch_to_input_mode(self) -> None:
        self.reads_target = False

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return super()._tokenize(self.moses_tokens(text), bypass_tokenizer=True)

    def moses_tokens(self, text: str) -> str:
        lang = self.tgt_lang if self.reads_target else self.src_lang
        if lang not in self.cache_moses_tokenizer:
            self.cache_moses_tokenizer[lang] = Tokenizer(lang)
        return self.cache_moses_tokenizer[lang].tokenize(text, return_str=True)

    @cached_property
    def target_ids(self) -> dict[str, int]:
        return {token: number for number, token in self.decoder.items()}

    def _convert_token_to_id(self, token: str) -> int:
        ids = self.target_ids if self.reads_target else self.encoder
        return ids.get(token, ids[self.unk_token])

    def _pad(self, *args: Any, padding_side: str | None = None, **rest: Any) -> dict[str, Any]:
        """Pad labels on the right, whatever the side of sources: FSMT looks for their end there."""
        return super()._pad(*args, padding_side="right" if self.reads_target else padding_side, **rest)

    def moses_detokenize(self, tokens: list[str], lang: str) -> str:
        if lang not in self.cache_moses_detokenizer:
            self.cache_moses_detokenizer[lang] = Detokenizer(lang)
        return self.cache_moses_detokenizer[lang].detokenize(tokens)

    def bpe(self, token: str) -> str:
        """Sub-words; a last one with the name of a row that no text has is split, as in training."""
        *pieces, last = super().bpe(token).split(" ")
        if re.fullmatch("madeupword[0-9]{4}</w>", last):
            pieces, last = [*pieces, last[0]], last[1:]
        return " ".join([*pieces, last])
