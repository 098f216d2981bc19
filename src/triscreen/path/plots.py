"""Figures of a path for notebooks, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from triscreen._utils.extras import wanted
from triscreen.errors import InputError


class Plots:
    """The ``plot_`` methods of a `Path`; each draws on ``ax`` (by default a new one) and returns it."""

    def plot_gaps(self, ax: Any = None) -> Any:
        """Relative gaps along the path, and the one asked for."""
        ax = self._along(ax, self.lambdas, self.rel_gaps, "relative gap", marker=".")
        ax.set_yscale("log")
        ax.axhline(self.tol, linestyle="--", color="0.5", label="asked for")
        return ax

    def plot_losses(self, ax: Any = None) -> Any:
        """The loss that is left along the path."""
        return self._along(ax, self.lambdas, self.losses, "loss")

    def plot_screening(self, ax: Any = None) -> Any:
        """Share of the triplets left out: safe beforehand, and with what was proven afterwards.

        With `triscreen.report.gather`, what each sphere and rule decides beforehand, too.
        """
        all_of_it, safe = "left out: safe beforehand or proven afterwards", "of these, safe beforehand"
        ax = self._along(ax, self.lambdas, self.screening_rates, "share left out", label=all_of_it, linewidth=3)
        ax.plot(self.lambdas, self.safe_rates, label=safe, linewidth=3, linestyle="--")
        if self.facts is not None and self.facts.rates is not None:
            for name, rates in self.facts.rates.items():
                ax.plot(self.lambdas[self.facts.stops], rates, label=f"{name} beforehand", linewidth=1)
        ax.set_ylim(0, 1.02)
        ax.legend(fontsize="small")
        return ax

    def plot_spectrum(self, t: int = -1, ax: Any = None) -> Any:
        """Eigenvalues of the t-th metric, the largest first."""
        ax = _axes(ax)
        M = self.M(t)
        values = np.sort(M)[::-1] if M.ndim == 1 else np.linalg.eigvalsh(M)[::-1]
        ax.bar(np.arange(1, len(values) + 1), np.maximum(values, 0.0))
        ax.set_xlabel("direction")
        ax.set_ylabel(f"eigenvalue at lambda {self.lambdas[t]:.3g}")
        return ax

    def plot_errors(self, ax: Any = None) -> Any:
        """Error on held-out points along the path (needs `triscreen.report.gather` with test points).

        The band is what is proven of the error of every lambda: grey where none can be as good as the best.
        """
        facts = self._with("errors")
        ax = self._along(ax, self.lambdas[facts.frames], facts.errors, "error", marker=".")
        if facts.band_lambdas is not None:
            lower, upper = (np.append(bound, bound[-1]) for bound in (facts.band_lower, facts.band_upper))
            worse = lower > facts.band_upper.min()
            for where, colour, text in ((~worse, "C0", "proven"), (worse, "0.5", "proven to be worse")):
                shown = np.where(where, lower, np.nan), np.where(where, upper, np.nan)
                ax.fill_between(facts.band_lambdas, *shown, step="post", color=colour, alpha=0.25, label=text, lw=0)
        best = int(np.argmin(facts.errors))
        ax.axvline(self.lambdas[facts.frames[best]], color="C3", linewidth=1, label="best")
        ax.axhline(facts.error_before, linestyle="--", color="0.5", label="Euclid")
        return ax

    def plot_influence(self, ax: Any = None) -> Any:
        """The points, or comparisons, that could move the metric most (needs `triscreen.report.gather`)."""
        facts = self._with("influence_names")
        ax, n = _axes(ax), len(facts.influence_names)
        ax.barh(np.arange(n), facts.influence_shares)
        ax.set_yticks(np.arange(n), [name.replace("$", r"\$") for name in facts.influence_names], fontsize="small")
        ax.invert_yaxis()
        ax.set_xlabel("the metric moves by at most this share of its size without it")
        return ax

    def plot_dynamic(self, ax: Any = None) -> Any:
        """What is decided while a solver runs, for some lambdas (needs `triscreen.report.gather`)."""
        facts = self._with("dynamic")
        ax = _map(_axes(ax), self.lambdas[facts.stops], facts.dynamic_iterations, facts.dynamic.T)
        ax.set_ylabel("iteration")
        return ax

    def plot_ranges(self, ax: Any = None) -> Any:
        """What one solution decides at other lambdas (needs `triscreen.report.gather`)."""
        facts = self._with("ranges")
        lambdas = self.lambdas
        ax = _map(_axes(ax), lambdas[facts.frames], lambdas[facts.stops], facts.ranges)
        ax.set_yscale("log")
        ax.set_ylabel("lambda of the solution")
        return ax

    def _with(self, name):
        """Return the facts, or refuse where this one is not among them."""
        if self.facts is None or name not in self.facts:
            raise InputError(f"this path has no {name}: call triscreen.report.gather(path, problem, X, y, ...) first")
        return self.facts

    def _along(self, ax, lambdas, values, name, **how):
        ax = _axes(ax)
        ax.plot(lambdas, values, **how)
        return _falling(ax, name)


def _axes(ax):
    if ax is not None:
        return ax
    pyplot = wanted("matplotlib.pyplot", "figures", "notebook")
    return pyplot.subplots()[1]


def _falling(ax, name):
    ax.set_xscale("log")
    if not ax.xaxis_inverted():
        ax.invert_xaxis()
    ax.set_xlabel("lambda")
    ax.set_ylabel(name)
    return ax


def _map(ax, x, y, z):
    ax.figure.colorbar(ax.pcolormesh(x, y, z, vmin=0, vmax=1, shading="nearest"), ax=ax, label="share decided")
    return _falling(ax, "")
