"""The sides of a comparison, one module for each environment; `MODELS` says by name how to get ready."""
