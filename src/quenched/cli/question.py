"""A question to a science, made from the words of a command, and its answers by theory and simulation."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
import typer
import xarray as xr

import quenched
from quenched.cli import options
from quenched.core.types import InputError


@dataclasses.dataclass(frozen=True)
class Question:
    """What a command asks of a science."""

    science: options.Science
    law: Any
    rule: Any
    start: Any
    controls: dict[str, Any]

    @classmethod
    def parse(
        cls, context: typer.Context, name: str | None, verb: str, law: str | None, rule: str | None, begin: str | None
    ) -> Question:
        """Make law, rule, start and controls from the words of a command."""
        found = options.science(name)
        own = [str(one.name) for one in context.command.params if one.name not in ("science", "help")]
        declared = options.declare(
            found, getattr(found.package, verb), law, rule, options.extra_options(context.args), own
        )
        return cls(found, *declared[:2], options.start(found, begin), declared[2])

    def curve(self) -> xr.Dataset:
        """The theory."""
        if self.start is not None and not self._theory_starts:
            raise InputError(
                "Option --start must not be given here, but it is: this theory does not depend on the start."
            )
        return self._curve(self.controls)

    @property
    def _theory_starts(self) -> bool:
        return "start" in inspect.signature(self.science.package.curve).parameters

    def _curve(self, controls: dict[str, Any]) -> xr.Dataset:
        begin = {"start": self.start} if self._theory_starts else {}
        return self.science.package.curve(self.law, self.rule, **begin, **controls)

    def measure(self, **settings: Any) -> xr.Dataset:
        """The simulation."""
        return self.science.package.measure(self.law, self.rule, start=self.start, **settings, **self.controls)

    def simulator(self, name: str | None) -> dict[str, Any]:
        """The simulator as a keyword; none without a name."""
        return {} if name is None else {"simulator": options.pick("--simulator", self.science.simulators, name)()}

    def compare(self, points: xr.Dataset, allowance: float | None, *, smooth: bool) -> tuple[list[xr.Dataset], str]:
        """The theory at the simulated points (and between, if `smooth`), and a sentence on their agreement."""
        package = self.science.package
        of_theory = options.verb_keywords(package.curve)
        only_measured = set(options.verb_keywords(package.measure)) - set(of_theory)
        wanted = {name: value for name, value in self.controls.items() if name not in only_measured}
        for name in of_theory:
            if smooth and np.ndim(wanted.get(name, 0)) == 1:
                wanted[name] = np.union1d(wanted[name], np.linspace(min(wanted[name]), max(wanted[name]), 101))
        try:
            theory = self._curve(wanted)
            granted = 1 / int(points.attrs["size"]) if allowance is None else allowance
            first = {dim: 0 for dim in theory.dims if dim not in points.dims and theory[dim].dtype.kind == "U"}
            found = quenched.agreement(theory.isel(first), points, allowance=granted)
            plain = max(float(abs(found.z[name]).max()) for name in found.z)
            return [theory], f"{found}; without the allowance {plain:.2f} standard errors"
        except InputError as error:
            return [], f"not compared with the theory: {error}"
