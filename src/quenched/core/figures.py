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

    theory = "theory"
    """A line; dashed where it is unstable."""
    simulation = "simulation"
    """Points with error bars of one standard error."""
    reference = "reference"
    """A thin grey line: a bound, an optimum, a trivial answer."""
    cloud = "cloud"
    """Single points without error bars: data, or positions."""
    mark = "mark"
    """Crosses: places of special meaning, such as cluster centres."""
    band = "band"
    """An area between `low` and `high`: an interval around a line."""
    image = "image"
    """A function of two variables, as colours with a scale named by the label."""


@dataclasses.dataclass(frozen=True)
class Series:
    """One line or set of points.

    Attributes:
        label: its entry in the legend; series of one label share a colour.
        kind: theory, simulation, reference, cloud, mark, band or image.
        x: abscissa.
        y: ordinate.
        yerr: one standard error, for simulations.
        unstable: where a theory is unstable, so that it is drawn dashed.
        dashes: what dashes mean, if something else than unstable.
        low: the lower edge of a band.
        high: the upper edge of a band.
        values: of an image `[x, y]`.
        group: series of one group share a colour; by default those of one label.
        outcome: a word for each point that needs one; by default "no value" for NaN.
    """

    label: str
    kind: Kind
    x: np.ndarray
    y: np.ndarray
    yerr: np.ndarray | None = None
    unstable: np.ndarray | None = None
    dashes: str = "unstable"
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    values: np.ndarray | None = None
    group: str = ""
    outcome: np.ndarray | None = None

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
    """A second scale on the right of a panel: `factor * y ** power` at the height of `y`.

    Attributes:
        label: its name, with its unit.
        factor: see above.
        power: see above.
    """

    label: str
    factor: float = 1.0
    power: float = 1.0


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        x: label of the abscissa, with its unit.
        y: label of the ordinate, with its unit.
        series: what is drawn.
        title: above it.
        xlim: limits, if not those of the data.
        ylim: limits, if not those of the data.
        log: axes that are logarithmic, of "x", "y", "xy".
        equal: whether both axes have the same scale.
        right: a second scale on the right.
        note: a line or two below it.
        key: whether the legend explains lines and points.
    """

    x: str
    y: str
    series: tuple[Series, ...]
    title: str = ""
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    log: str = ""
    equal: bool = False
    right: Scale | None = None
    note: str = ""
    key: bool = True


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of a paper, computed again.

    Attributes:
        key: paper and name, such as "biehl2006/figure_2".
        title: one line.
        caption: what is compared with what, and every choice the paper leaves open.
        panels: what is drawn; none, and the data are drawn as `quenched.plot` draws them.
        data: the results it is drawn from, by name.
        agreement: comparisons of theory and simulation, by what they compare.
    """

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    data: Mapping[str, xr.Dataset] = dataclasses.field(default_factory=dict)
    agreement: Mapping[str, Agreement] = dataclasses.field(default_factory=dict)


def comparison(figure: Figure, name: str) -> str:
    """What a comparison is called in claims and in `agreement.json`: "biehl2006/figure_2: LVQ1, p₊ = 0.8"."""
    return f"{figure.key}: {name}"


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a report: a paper computed again, or something shown on data.

    Attributes:
        key: its short name, such as "biehl2006".
        title: the headline.
        reference: the paper.
        figures: in the order in which they are shown.
        claims: statements of the paper, and our values.
        not_built: figures of the paper that this package does not compute, and why.
        failed: figures, or "claims", that should have been computed and were not, and why.
    """

    key: str
    title: str
    reference: str = ""
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    not_built: Mapping[str, str] = dataclasses.field(default_factory=dict)
    failed: Mapping[str, str] = dataclasses.field(default_factory=dict)
