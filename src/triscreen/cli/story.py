"""What a path tells: triplets, the shares safe beforehand and proven afterwards, gaps, errors before and after."""

from __future__ import annotations

import numpy as np

from triscreen.cli.common import table
from triscreen.path.facts import Facts
from triscreen.report.intervals import counted

_SHOWN = 12


class Story:
    """A path in a few lines, with the errors that `triscreen.report.gather` found, where there are any."""

    def __init__(self, path):
        facts = path.facts or Facts()
        self.path, self.before, self.left_out, self.best = path, facts.error_before, facts.left_out, None
        self.prior, self.n_test = facts.prior, facts.n_test
        self.errors = {}
        if facts.errors is not None:
            self.errors = dict(zip(facts.frames.tolist(), facts.errors.tolist(), strict=True))
        self.complete = not self.left_out
        places = list(self.errors) if self.errors and self.complete else range(len(path))
        shown = {places[place] for place in np.linspace(0, len(places) - 1, _SHOWN).astype(int)}
        if self.errors:
            self.best = min(self.errors, key=self.errors.get)
            shown.add(self.best)
        self.shown = sorted(shown)

    def headline(self):
        """Return one line: triplets, the shares of them that were left out, gap, error."""
        path = self.path
        begun = "" if self.prior is None else f", from the prior {self.prior}"
        text = (
            f"{path.n_triplets:,} triplets{begun}, on average {path.safe_rates.mean():.1%} left out as safe beforehand "
            f"and {path.proven_rates.mean():.1%} proven irrelevant afterwards; "
            f"{len(path)} metrics in {path.seconds.sum():.2g} s, largest relative gap {path.rel_gaps.max():.1e}"
        )
        if self.best is not None:
            best = "its best lambda" if self.complete else f"the best lambda of {len(self.errors)} looked at"
            before, after = self.before, self.errors[self.best]
            if self.n_test:
                before, after = counted(before, self.n_test), counted(after, self.n_test)
            else:
                before, after = f"{before:.1%}", f"{after:.1%}"
            text += f"; held-out error {before} before, {after} at {best}, which was chosen on these"
        return text

    def numbers(self):
        """Return the whole path for machines."""
        path = self.path
        names = ("lambdas", "losses", "rel_gaps", "screening_rates", "safe_rates", "proven_rates", "n_iter", "passes",
                 "seconds")  # fmt: skip
        told = {"n_features": path.n_features, "n_triplets": path.n_triplets, "tol": path.tol,
                "stopped_by": path.stopped_by, "converged": bool(path.converged.all())}  # fmt: skip
        if self.prior is not None:
            told["prior"] = self.prior
        told.update({name: getattr(path, name) for name in names})
        if self.best is not None:
            told.update(error_before=self.before, error_after=self.errors[self.best],
                        best_lambda=path.lambdas[self.best])  # fmt: skip
        if self.left_out:
            told["left_out"] = self.left_out
        return told

    def show(self, stderr=False):
        """Print the headline and a table."""
        from rich.console import Console

        path, names = self.path, ["lambda", "safe", "proven", "gap", "passes", "rank"]
        safe, proven = path.safe_rates, path.proven_rates
        rows = [
            [f"{path.lambdas[t]:.3g}", f"{safe[t]:.1%}", f"{proven[t]:.1%}", f"{path.rel_gaps[t]:.1e}",
             f"{path.passes[t]:.1f}", len(path.components(t)), *([self._error(t)] if self.errors else [])]
            for t in self.shown
        ]  # fmt: skip
        marked = None if self.best is None else self.shown.index(self.best)
        table(names + (["error"] if self.errors else []), rows, marked, stderr)
        Console(stderr=stderr, soft_wrap=True, highlight=False).print(self.headline())

    def _error(self, t):
        return f"{self.errors[t]:.1%}" if t in self.errors else ""
