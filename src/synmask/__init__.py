"""Grammar induction inside a Transformer: the library behind the workflow's rules."""

__version__ = "0.2.0"
