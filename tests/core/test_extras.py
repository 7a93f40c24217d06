"""What only some users need is asked for in one sentence."""

import ast
import builtins
import sys
import tomllib
from pathlib import Path

import jax
import pytest

import quenched
from quenched import outliers
from quenched.core.system import load_extra
from quenched.core.types import InputError


@pytest.fixture
def without(monkeypatch):
    """Make a package look as if it were not installed."""

    def hide(*names):
        known, load = {name.partition(".")[0] for name in names}, builtins.__import__

        def refuse(name, *args, **kwargs):
            if name.partition(".")[0] in known:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return load(name, *args, **kwargs)

        for name in list(sys.modules):
            if name.partition(".")[0] in known:
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(builtins, "__import__", refuse)
        monkeypatch.setattr(sys, "meta_path", [_Hidden(known), *sys.meta_path])

    return hide


class _Hidden:
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_package_that_is_there_is_loaded():
    import json

    assert load_extra("json", extra="none", purpose="Nothing") is json


def test_what_a_package_lacks_itself_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("import surely_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="surely_not_there"):
        load_extra("half_installed", extra="cluster", purpose="It")


def test_a_cluster_asks_for_its_extra(without):
    without("distributed", "dask")
    with pytest.raises(InputError, match=r"`Dask` needs the package distributed.*pip install 'quenched\[cluster\]'"):
        outliers.measure(
            outliers.Contaminated(), outliers.Hebb(), alpha=2.0, size=10, runs=2, key=jax.random.key(0),
            executor=quenched.Dask("tcp://127.0.0.1:1"),
        )  # fmt: skip


def test_sampling_asks_for_its_extra(without):
    without("blackjax")
    with pytest.raises(InputError, match=r"needs the package blackjax.*pip install 'quenched\[sampling\]'"):
        outliers.measure(
            outliers.Contaminated(), outliers.Gibbs(), alpha=2.0, size=10, runs=2, key=jax.random.key(0)
        )  # fmt: skip


ONLY_HERE = {
    ("core/ensemble/executors.py", "distributed"),
    ("fields/practice/sampling.py", "blackjax"),
    ("fields/practice/tempering.py", "blackjax"),
}
"""Imports of packages of extras, below a call of `load_extra`."""


def test_nothing_else_needs_an_extra():
    """`pip install quenched` alone has theory, learners, command line and plots."""
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    words = {word.split(">")[0].replace("-", "_") for name in ("cluster", "sampling", "papers", "tables")
             for word in declared["optional-dependencies"][name] if "[" not in word}  # fmt: skip
    assert {"dask", "distributed", "blackjax", "mlxtend", "pyarrow"} <= words
    assert not words & {word.split(">")[0].replace("-", "_") for word in declared["dependencies"]}
    source, found = Path(quenched.__file__).parent, set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            packages = {name.partition(".")[0] for name in names} & words
            found |= {(path.relative_to(source).as_posix(), package) for package in packages}
    assert found == ONLY_HERE


def test_the_version_is_public():
    assert quenched.__version__ == "0.1.0"
