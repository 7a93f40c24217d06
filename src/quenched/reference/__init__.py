"""Reference values: numbers of the theories that an independent route certifies, for other packages to test against.

`values.json` holds them, `schema.json` (JSON Schema) says what each field means. `python -m benchmarks.reference` makes
the first from the comparisons and claims of the papers and from the exactly solvable cases of the tests.
"""

from quenched.reference.load import FORMAT, SCHEMA, VALUES, load_reference, parameters

__all__ = ["FORMAT", "SCHEMA", "VALUES", "load_reference", "parameters"]
