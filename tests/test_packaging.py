"""The conda recipe is valid and asks for what `pyproject.toml` asks for; the paper cites what it lists."""

import re
import tomllib
from pathlib import Path

import pytest
import rattler_build
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = (ROOT / "conda" / "recipe.yaml").read_text()
PAPER = ROOT / "paper"
ELSEWHERE = {"matplotlib-base": "matplotlib"}
"""Packages that have another name there."""


def test_the_conda_recipe_is_valid():
    (variant,) = rattler_build.Stage0Recipe.from_yaml(RECIPE).render()
    recipe = variant.recipe.to_dict()
    assert (recipe["package"]["name"], recipe["package"]["version"]) == (PROJECT["name"], PROJECT["version"])


@pytest.mark.parametrize(
    ("right", "wrong"), [("noarch: python", "noarch: rocket"), ("about:", "abuot:"), ("jax >=0.10", "jax >=>0")]
)
def test_a_recipe_with_a_slip_is_not_valid(right, wrong):
    assert right in RECIPE
    with pytest.raises(rattler_build.RecipeParseError):
        rattler_build.Stage0Recipe.from_yaml(RECIPE.replace(right, wrong)).render()


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    run = re.findall(r"^    - (\S+) >=(\S+)$", RECIPE.split("  run:\n")[1].split("\ntests:")[0], re.MULTILINE)
    wanted = [tuple(one.split(">=")) for one in PROJECT["dependencies"]]
    python = ("python", PROJECT["requires-python"].removeprefix(">="))
    assert [(ELSEWHERE.get(name, name), version) for name, version in run] == [python, *wanted]
    assert f"quenched = {PROJECT['scripts']['quenched']}" in RECIPE
    assert "://" not in RECIPE


def test_the_readme_runs_the_wheel_that_is_built():
    wheel = f"{PROJECT['name']}-{PROJECT['version']}-py3-none-any.whl"
    assert f"/{wheel} quenched forecast " in (ROOT / "README.md").read_text()


def test_the_paper_has_its_form_and_lists_what_it_cites():
    _, head, body = (PAPER / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
    front = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(front)
    assert [author["name"] for author in front["authors"]] == ["The quenched authors"]
    assert re.findall(r"^# (.+)$", body, re.MULTILINE)[:2] == ["Summary", "Statement of need"]
    listed = re.findall(r"^@\w+\{(\w+),", (PAPER / front["bibliography"]).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+)", body)) == set(listed)
    assert 250 < len(body.split()) < 1750
