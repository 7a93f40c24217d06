"""quenched."""
