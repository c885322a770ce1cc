"""The computations of beam search for each token, in C++ and in PyTorch. A sentence has W hypotheses."""
