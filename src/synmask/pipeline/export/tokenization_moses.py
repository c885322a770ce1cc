"""The tokenizer of an exported translation model; `synmask export` copies this file into the model's folder.

`AutoTokenizer.from_pretrained(FOLDER, trust_remote_code=True)` runs the copy. It needs transformers and
sacremoses, but not synmask: `synmask.pipeline.text.moses` goes along as a copy, too.
"""

import re
from typing import Any

from transformers import FSMTTokenizer

from synmask.pipeline.text.moses import Detokenizer, Tokenizer


class MosesTokenizer(FSMTTokenizer):
    """FSMT's tokenizer with Moses' plain tokenisation.

    FSMT's own tokenizer normalises punctuation and splits at hyphens; the model has never seen such text.
    """

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        if self.src_lang not in self.cache_moses_tokenizer:
            self.cache_moses_tokenizer[self.src_lang] = Tokenizer(self.src_lang)
        tokens = self.cache_moses_tokenizer[self.src_lang].tokenize(text, return_str=True)
        return super()._tokenize(tokens, bypass_tokenizer=True)

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
