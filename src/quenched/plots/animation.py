"""Pictures that move: a control grows (or falls, as in an annealing), and the picture with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib import animation
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox, TransformedBbox

from quenched.core import checks
from quenched.core.errors import InputError
from quenched.plots.series import GREY, PALETTE

FALLING = ("width", "temperature")
"""Controls that an annealing lowers: their pictures grow from the largest value down."""
FRAMES = 48
"""Frames of a control that is continuous."""
PER_SECOND = 12
"""Frames a second, if not chosen."""
ENDINGS = (".gif", ".mp4")


class Animation:
    """A picture that moves, from `quenched.plot(..., animate=...)`.

    Attributes:
        figure: the matplotlib figure; it shows the last frame that was drawn.
        values: the control in each frame.

    Examples:
        >>> import numpy as np
        >>> import quenched
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2)
        >>> curve = prototypes.curve(law, rule, alpha=np.linspace(0, 50, 51))
        >>> moving = quenched.plot(curve, variables="error", animate="alpha")
        >>> len(moving.values)
        48
    """

    def __init__(self, figure: Figure, values: np.ndarray, show: Callable[[float], None]):
        self.figure, self.values, self._show = figure, values, show

    def show(self, frame: int) -> Figure:
        """Draw one frame."""
        self._show(float(self.values[frame]))
        return self.figure

    def save(self, path: str | os.PathLike[str], *, frames_per_second: int = PER_SECOND) -> Path:
        """Write the animation.

        Args:
            path: FILE.gif, or FILE.mp4 where ffmpeg is installed.
            frames_per_second: how fast it moves.

        Raises:
            InputError: if the file has another ending, or ffmpeg is not found.
        """
        target = Path(path)
        if target.suffix.lower() not in ENDINGS:
            raise InputError(f"Argument `path` must end in {' or '.join(ENDINGS)}, but {target} was given.")
        rate = checks.whole("frames_per_second", frames_per_second, least=1)
        gif = target.suffix.lower() == ".gif"
        if not gif and not animation.FFMpegWriter.isAvailable():
            raise InputError(f"Argument `path` must end in .gif where ffmpeg is not installed, but {target} was given.")
        writer = animation.PillowWriter(fps=rate) if gif else animation.FFMpegWriter(fps=rate)
        moving = animation.FuncAnimation(self.figure, self.show, frames=len(self.values), init_func=lambda: None)  # pyright: ignore[reportArgumentType]
        moving.save(target, writer=writer, dpi=100)
        return target


def grow(figure: Figure, axes: Sequence[Axes], control: str, label: str, *, upright: bool) -> Animation:
    """Uncover a finished picture along a control that is an axis of it.

    Args:
        figure: the picture, whose layout stays.
        axes: its axes.
        control: what is on the axis.
        label: its name on the axis.
        upright: whether that is the ordinate.
    """
    _freeze(figure, axes[0])
    span = "ylim" if upright else "xlim"
    ends = np.array([getattr(ax, f"get_{span}")() for ax in axes])
    low, high = _ends_of_data(axes, upright=upright)
    log = all(getattr(ax, f"get_{span[0]}scale")() == "log" for ax in axes)
    values = np.geomspace(low, high, FRAMES) if log and low > 0 else np.linspace(low, high, FRAMES)
    falling = control in FALLING
    windows = []
    for ax in axes:
        windows.append(Bbox.null())
        shown = TransformedBbox(windows[-1], ax.transData)
        for artist in (*ax.lines, *ax.collections, *ax.patches, *(ax.texts if upright else ())):
            artist.set_clip_path(None)
            artist.set_clip_box(shown)
            artist.set_clip_on(True)
    heads = [] if upright else [_Head(ax, line) for ax in axes for line in list(ax.lines) if _is_curve(line)]

    def show(value: float) -> None:
        for window, (first, last), ax in zip(windows, ends, axes, strict=True):
            start, stop = (value, last) if falling else (first, value)
            x, y = (ax.get_xlim(), (start, stop)) if upright else ((start, stop), ax.get_ylim())
            window.set_points(np.array([x, y]).T)
        for head in heads:
            head.move(value)
        axes[0].set_title(f"{label} = {value:.3g}", loc="right", fontsize=11)

    return Animation(figure, values[::-1] if falling else values, show)


def change(
    figure: Figure, axes: Sequence[Axes], values: np.ndarray, label: str, redraw: Callable[[int], None]
) -> Animation:
    """Draw a picture again for each value of a control that is not on its axes; limits and layout stay."""
    _freeze(figure, axes[0])

    def show(value: float) -> None:
        for ax in axes:
            kept = {
                name: getattr(ax, f"get_{name}")() for name in ("xlim", "ylim", "xlabel", "ylabel", "xscale", "yscale")
            }
            for artist in (*ax.lines, *ax.collections, *ax.patches, *ax.texts):
                artist.remove()
            ax.containers.clear()
            ax.set(**kept)
        redraw(int(np.argmin(np.abs(values - value))))
        axes[0].set_title(f"{label} = {value:.3g}", loc="right", fontsize=11)

    return Animation(figure, values[::-1] if label in FALLING else values, show)


def _freeze(figure: Figure, first: Axes) -> None:
    """Keep the layout of a figure as it is now, with room for the value of the control."""
    first.set_title(" ", loc="right", fontsize=11)
    figure.canvas.draw()
    figure.set_layout_engine("none")


def _is_curve(line: Line2D) -> bool:
    """Whether a line is drawn and has several points."""
    drawn = line.get_linestyle() != "None" and line.get_marker() in ("", "None", None) and line.get_color() != GREY
    x, y = (np.asarray(values, float) for values in line.get_data())
    return drawn and np.isfinite(y).sum() > 1 and np.ptp(x) > 0


def _ends_of_data(axes: Sequence[Axes], *, upright: bool) -> tuple[float, float]:
    """Where what is drawn begins and ends along one direction."""
    every = [line.get_ydata() if upright else line.get_xdata() for ax in axes for line in ax.lines]
    values = np.concatenate([np.asarray(part, float).ravel() for part in every])
    values = values[np.isfinite(values)]
    return float(values.min()), float(values.max())


class _Head:
    """The dot at the end of a line that grows."""

    def __init__(self, ax: Axes, line: object):
        self.x, self.y = (np.asarray(part, float) for part in (line.get_xdata(), line.get_ydata()))  # pyright: ignore[reportAttributeAccessIssue]
        colour = line.get_color()  # pyright: ignore[reportAttributeAccessIssue]
        (self.dot,) = ax.plot([], [], "o", ms=6, color=colour if colour else PALETTE[0], zorder=5)

    def move(self, value: float) -> None:
        """Put it on the line at a value of the control, if the line is there."""
        y = np.interp(value, self.x, self.y, left=np.nan, right=np.nan) if np.all(np.diff(self.x) >= 0) else np.nan
        self.dot.set_data([value] if np.isfinite(y) else [], [y] if np.isfinite(y) else [])
