"""The experiments around the method: data, training, evaluation, tables, and the steps that rules call."""
