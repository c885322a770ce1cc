"""BLEU on the validation set during a training, for settings with `validate_bleu`."""

from synmask.pipeline.config.sections import Decoding
from synmask.pipeline.evaluation.bleu import bleu
from synmask.pipeline.text.notation import join_subwords
from synmask.pipeline.translation.beam import BeamSearch, best_hypotheses
from synmask.pipeline.translation.dataset import AnnotatedPairs
from synmask.pipeline.translation.transformer import GuidedTransformer


def valid_bleu(model: GuidedTransformer, data: AnnotatedPairs, decoding: Decoding) -> float:
    """Tokenised BLEU of a validation set, decoded as the workflow decodes it; words are joined sub-words.

    An empty sentence stays empty, and an unknown sub-word of a reference is right in no hypothesis.
    """
    words = data.tgt_dict
    search = BeamSearch([model.eval()], words, decoding)
    hypotheses = [*map(join_subwords, best_hypotheses(search, data))]
    references = [join_subwords(words.string(ids, escape_unk=True)) for ids in data.tgt]
    return bleu("bleu_tokenised", "").corpus_score(hypotheses, [references]).score
