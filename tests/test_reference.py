"""The reference values: the file follows its schema, both routes of each value agree, the theory gives them."""

import json
import random

import pytest

import quenched
from benchmarks import reference
from quenched.reference import FORMAT, SCHEMA, VALUES

STORED = json.loads(VALUES.read_text(encoding="utf-8"))
ROWS = STORED["values"]
KINDS = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "null": type(None)}
SAMPLED = 2
"""Rows of each kind, a verb of a science with one rule, that are computed again."""
REPEATED = 1e-7
"""The same theory again, on another machine, relative."""


def flaws(value, schema, where="file"):
    """What contradicts a schema, in the part of JSON Schema that ours uses."""
    unknown = set(schema) - {"type", "enum", "const", "required", "properties", "additionalProperties", "items",
                             "minItems", "title", "description"}  # fmt: skip
    assert not unknown, f"the schema uses {unknown}, which is not checked here"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, KINDS[kind]) and not isinstance(value, bool) for kind in kinds):
        return [f"{where} is no {' or '.join(kinds)}"]
    found = [f"{where} is {value}"] if "const" in schema and value != schema["const"] else []
    found += [f"{where} is {value}"] if "enum" in schema and value not in schema["enum"] else []
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{where} lacks {name}" for name in schema["required"] if name not in value]
        found += [f"{where} has {name}" for name in value if name not in schema["properties"]]
        for name, part in value.items():
            found += flaws(part, schema["properties"].get(name, {}), f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        found += [f"{where} is short"] if len(value) < schema["minItems"] else []
        for i, part in enumerate(value):
            found += flaws(part, schema["items"], f"{where}[{i}]")
    return found


def test_the_file_follows_its_schema():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert flaws(STORED, schema) == []
    broken = {**STORED, "values": [{**ROWS[0], "route": "guess", "value": "1"}, {}]}
    assert len(flaws(broken, schema)) == 2 + len(ROWS[0]) + 1


def test_both_routes_of_every_value_agree():
    for row in ROWS:
        noise = 6 * row["stderr"] if row["stderr"] else 0.0  # the largest of some thousand
        assert abs(row["value"] - row["other"]) <= (row["allowance"] + noise) * (1 + 1e-6) + 1e-12, row


def test_the_table_is_what_the_file_says():
    table = quenched.load_reference()
    assert len(table) == len(ROWS) >= 2000
    assert table.attrs == {"version": STORED["version"], "format": FORMAT}
    assert set(table.science) == {*quenched.SCIENCES, "replica"}
    assert table.value.tolist() == [row["value"] for row in ROWS]
    assert table.law.tolist() == [row["law"] for row in ROWS]


def kinds():
    """Rows that can be computed again, by what computes them."""
    found = {}
    for row in ROWS:
        if row["verb"]:
            found.setdefault((row["science"], row["verb"], row["rule"]["name"]), []).append(row)
    return found


@pytest.mark.parametrize("kind", kinds(), ids=" ".join)
def test_the_theory_gives_the_values_again(kind):
    for row in random.Random(" ".join(kind)).sample(kinds()[kind], SAMPLED):
        assert reference.compute(row) == pytest.approx(row["value"], rel=REPEATED, abs=REPEATED), row
