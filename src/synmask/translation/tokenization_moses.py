"""The tokenizer of a translation model that `synmask export` wrote: a copy of this file lies in its folder.

`AutoTokenizer.from_pretrained(FOLDER, trust_remote_code=True)` runs it there. It needs transformers and
sacremoses, and nothing of synmask.
"""

from typing import Any

from transformers import FSMTTokenizer


class MosesTokenizer(FSMTTokenizer):
    """FSMT's tokenizer for text that Moses tokenised plainly.

    FSMT's own first normalises punctuation and then splits at hyphens. The model has never seen such text.
    """

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        if self.src_lang not in self.cache_moses_tokenizer:
            self.cache_moses_tokenizer[self.src_lang] = self.sm.MosesTokenizer(lang=self.src_lang)
        tokens = self.cache_moses_tokenizer[self.src_lang].tokenize(text, return_str=True)
        return super()._tokenize(tokens, bypass_tokenizer=True)
