"""Figures and claims as data: what a paper's module returns, what `plots` draws and `report` prints."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

import numpy as np
import xarray as xr

from quenched.core.claims import Claim
from quenched.core.proof import Agreement


class Kind(enum.Enum):
    """What a series is, and so how it is drawn."""

    theory = "theory"  # a line; dashed where it is unstable
    simulation = "simulation"  # points with error bars of one standard error
    reference = "reference"  # a thin grey line: a bound, an optimum, a trivial answer
    cloud = "cloud"  # single points without error bars: data, or positions
    row = "row"  # dark points with a light edge: data on an image
    cell = "cell"  # frames around single cells of an image
    mark = "mark"  # crosses: places of special meaning, such as cluster centres
    band = "band"  # an area between `low` and `high`: an interval around a line
    image = "image"  # a function of two variables, as colours with a scale named by the label
    node = "node"  # circles with their `names` in them: the nodes of a graph
    word = "word"  # `names` as text, such as those of regions
    arrow = "arrow"  # arrows from `x`, `y` to `ends`


@dataclasses.dataclass(frozen=True)
class Series:
    """One line or set of points."""

    label: str  # its entry in the legend
    kind: Kind
    x: np.ndarray
    y: np.ndarray
    yerr: np.ndarray | None = None  # one standard error, for simulations
    unstable: np.ndarray | None = None  # where a theory is unstable, so that it is drawn dashed
    dashes: str = "unstable"  # what dashes mean
    low: np.ndarray | None = None  # the lower edge of a band
    high: np.ndarray | None = None  # the upper edge of a band
    values: np.ndarray | None = None  # of an image [x, y]
    names: np.ndarray | None = None  # of nodes, or words
    ends: np.ndarray | None = None  # of arrows [n, 2]
    group: str = ""  # series of one group share a colour; by default those of one label
    state: np.ndarray | None = (
        None  # which state each point belongs to: a line breaks where one takes over from another
    )
    outcome: np.ndarray | None = None  # a word for each point that needs one; by default "no value" for NaN

    @property
    def colour_of(self) -> str:
        """The group whose colour it has."""
        return self.group or self.label

    @property
    def marks(self) -> np.ndarray:
        """A word for each point that did not converge or has no value, otherwise empty."""
        if self.outcome is not None:
            return self.outcome
        lost = ~np.isfinite(np.asarray(self.y, float)) & (self.kind is not Kind.band)
        return np.where(lost, "no value", "")


@dataclasses.dataclass(frozen=True)
class Scale:
    """A second scale on the right of a panel: `factor * y ** power` at the height of `y`."""

    label: str  # its name, with its unit
    factor: float = 1.0
    power: float = 1.0


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    x: str  # label of the abscissa, with its unit
    y: str  # label of the ordinate, with its unit
    series: tuple[Series, ...]
    title: str = ""
    xlim: tuple[float, float] | None = None  # limits, if not those of the data
    ylim: tuple[float, float] | None = None
    log: str = ""  # axes that are logarithmic, of "x", "y", "xy"
    equal: bool = False  # whether both axes have the same scale
    right: Scale | None = None
    note: str = ""  # a line or two below it
    key: bool = True  # whether the legend explains lines and points
    frame: bool = True  # whether it has axes; a graph has none


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a paper, computed again."""

    key: str  # paper and name, such as "biehl2006/figure_2"
    title: str
    caption: str  # what is compared with what, and every choice the paper leaves open
    panels: tuple[Panel, ...]  # what is drawn; none, and the data are drawn as `quenched.plot` draws them
    data: Mapping[str, xr.Dataset] = dataclasses.field(default_factory=dict)  # the results it is drawn from, by name
    agreement: Mapping[str, Agreement] = dataclasses.field(default_factory=dict)  # by what is compared


def comparison(figure: Figure, name: str) -> str:
    """What a comparison is called in claims and in `agreement.json`: "biehl2006/figure_2: LVQ1, p₊ = 0.8"."""
    return f"{figure.key}: {name}"


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a report: a paper computed again, or something shown on data."""

    key: str  # its short name, such as "biehl2006"
    title: str
    reference: str = ""  # the paper
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    not_built: Mapping[str, str] = dataclasses.field(default_factory=dict)  # figures that are not computed, and why
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)  # figures, or "claims", that were not, and why
