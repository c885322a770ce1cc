"""What beam search computes for each token, in C++ and in PyTorch. S sentences have W hypotheses each."""
