"""What a model takes along when it leaves the repository: code for transformers, and a model card."""
