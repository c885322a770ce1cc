"""The computations of beam search for each token, in C++ and in PyTorch. S sentences have W hypotheses each."""
