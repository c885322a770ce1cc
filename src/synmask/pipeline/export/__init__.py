"""The code and the model card of a model that leaves the repository."""
