"""A forecast in the shape of scikit-learn's displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quenched.forecasting import forecast
from quenched.plots.drawing import plot

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


class ForecastDisplay:
    """The measured learning curve of an estimator and its forecast, as `sklearn.model_selection.LearningCurveDisplay`.

    Use `from_estimator` to make one.

    Attributes:
        forecast: what `quenched.forecast` returned.
        ax_: the axes that were drawn on.
        figure_: their figure.

    Examples:
        >>> from quenched.plots import ForecastDisplay
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_wine(return_X_y=True)
        >>> display = ForecastDisplay.from_estimator(GaussianNB(), X, y, random_state=0)
        >>> display.ax_.get_xscale()
        'log'
    """

    def __init__(self, *, forecast: xr.Dataset):
        self.forecast = forecast

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, **how: Any) -> ForecastDisplay:
        """Forecast and draw.

        Args:
            estimator: a classifier or a regressor.
            X: the inputs.
            y: the targets.
            ax: axes to draw on; by default those of a new figure.
            how: other arguments of `quenched.forecast`.
        """
        return cls(forecast=forecast(estimator, X, y, **how)).plot(ax)

    def plot(self, ax: Axes | None = None) -> ForecastDisplay:
        """Draw the forecast, on given axes or in a new figure."""
        self.figure_ = plot(self.forecast, ax=ax)
        self.ax_ = self.figure_.axes[0] if ax is None else ax
        return self
