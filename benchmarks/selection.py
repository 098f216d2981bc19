"""The validation error of every lambda: how much of it is decided, what a proven choice takes, and leave-one-out.

    python benchmarks/selection.py bounds|select|cv|figure|loo [--data NAME ...]

bounds: the bounds of a path at 0.9 and 0.99 beside the path. select: the best lambda over five decades to within eps,
from a path of 18 lambdas, with balls between two ends and with balls from one end alone (of the nearer one, as for
linear classifiers). cv: `TripletMetricCV(certify=eps)` beside the same fit without, one start. loo:
leave-one-out of all points, with triplets of five neighbours, beside 50 refits (neighbours, problem, a solve from the
metric of the whole to the path's gap, and the vote), which are extrapolated. figure: what is proven of the error,
before a selection and after it, as docs/figures/selection.svg.

A tenth of the points is held out (cv: five folds); three neighbours vote. Seconds are the processor's, one thread. Data
sets of the paper are read from the folder TRISCREEN_DATA; what is missing is skipped.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

import triscreen as ts
from triscreen.selection.journal import CUT, Step
from triscreen.selection.judge import Judge, Verdict
from triscreen.selection.search import Search
from triscreen.selection.sides import Side

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.datasets import DATA, Missing, load

NAMES = ("wine", "cancer", "digits", "segment", "satimage", "phishing")
EPS = (0.02, 0.01, 0.005)
LIMIT = 150  # seconds of one selection
K = 5  # neighbours that triplets are made of, where points are left out
REFITS = 50


class OneEnded(Judge):
    """Decides from the nearer end alone: the same metric and alphas at another lambda."""

    def __init__(self, judge):
        super().__init__(judge.problem, judge._points, judge._subject)

    def decide(self, first, second, parent=None):
        """Return what both halves say."""
        if first is second:
            return super().decide(first, second, parent)
        middle = float(np.sqrt(first.lam * second.lam))
        halves = (first, replace(first, lam=middle)), (replace(second, lam=middle), second)
        one, two = (super(OneEnded, self).decide(*half, parent).outcomes for half in halves)
        return Verdict(np.where(one == two, one, np.int8(0)), None)


class Solved(Side):
    """Cuts by solving, always."""

    def step(self, place, may_solve):
        """Cut at a solution."""
        piece = self.pieces[place]
        key = float(np.sqrt(piece.high) * np.sqrt(piece.low))
        first, second = self._end(piece.high), self._end(piece.low)
        made, end = self._solve(key, first.M, 1e-3 * self.path.tol)
        self._ends[key] = end
        verdicts = [self.judge.decide(*both, piece.verdict) for both in ((first, end), (end, second))]
        return Step(CUT, [place], made, verdicts)


def one_ended(path, bounds, eps):
    """Return (lambdas solved, metrics evaluated, gap, why it ended) with balls from one end."""
    judge, found = OneEnded(bounds.judge), []
    for t in range(len(path) - 1):
        ends = (path._quick_end(number, judge.problem) for number in (t, t + 1))
        found.append(judge.decide(*ends).outcomes)
    search = Search([Solved(replace(bounds, outcomes=np.array(found), judge=judge, left=[None] * len(found)))], eps)
    stopped = search.run(LIMIT)
    return search.n_solved, search.n_evaluated, search.gap(), stopped


def two_ended(path, bounds, eps):
    found = ts.select(path, bounds, eps, max_seconds=LIMIT)
    return found.n_solved, found.n_evaluated, found.gap, found.stopped_by


def held_out(name, seed=0):
    X, y = load(name)[:2]
    order = np.random.default_rng(seed).permutation(len(X))
    known, asking = np.split(order, [int(0.9 * len(X))])
    return X[known], y[known], X[asking], y[asking]


def timed(work, *arguments, **named):
    begin = time.process_time()
    found = work(*arguments, **named)
    return found, time.process_time() - begin


def made(name):
    X, y, X_val, y_val = held_out(name)
    return ts.Problem(X, ts.knn_triplets(X, y, DATA[name].k or 20), n_jobs=1), (X, y, X_val, y_val)


def bounds(name):
    problem, data = made(name)
    for ratio in (0.9, 0.99):
        path, seconds = timed(ts.solve_path, problem, ratio=ratio)
        ts.validation_bounds(path.take([0]), *data, problem=problem)  # loads kernels
        found, more = timed(ts.validation_bounds, path, *data)
        decided = (found.outcomes != 0).mean()
        best = f"{found.lower.min():.4f} to {found.upper.min():.4f}"
        print(f"{name:14s} {ratio:5g} {len(path):7d} {seconds:8.2f} {more:9.2f} {decided:8.1%} {best:>16s}", flush=True)


def select(name):
    problem, data = made(name)
    top = problem.lambda_max()
    path, seconds = timed(ts.solve_path, problem, lambdas=top * np.geomspace(1, 1e-5, 18))
    found, more = timed(ts.validation_bounds, path, *data)
    for eps in EPS:
        for kind, work in (("two ends", two_ended), ("one end", one_ended)):
            (solved, evaluated, gap, stopped), spent = timed(work, path, found, eps)
            print(f"{name:14s} {eps:5g} {kind:>9s} {seconds + more:8.2f} {spent:8.2f} {solved:7d} {evaluated:9d} "
                  f"{gap:7.4f} {stopped}", flush=True)  # fmt: skip


def cv(name):
    X, y = load(name)[:2]
    how = {"candidates": [None], "n_jobs": 1, "smallest_ratio": 1e-5}
    ts.TripletMetricCV(**how, certify=0.3, cv=2).fit(X[::4], y[::4])  # loads kernels
    plain = min(timed(ts.TripletMetricCV(**how).fit, X, y)[1] for _ in range(2))
    for eps in EPS:
        model, spent = timed(ts.TripletMetricCV(**how, certify=eps, max_seconds=LIMIT).fit, X, y)
        print(f"{name:14s} {eps:5g} {plain:8.2f} {spent:8.2f} {spent / plain:6.1f} {1 - model.best_score_:7.4f} "
              f"{model.selection_gap_:7.4f} {len(model.possible_ratios_):5d}", flush=True)  # fmt: skip


def figure(name):
    from matplotlib import pyplot

    problem, data = made(name)
    path = ts.solve_path(problem, lambdas=problem.lambda_max() * np.geomspace(1, 1e-5, 40))
    found = ts.select(path, bounds := ts.validation_bounds(path, *data), 0.01)
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    for ax, shown, title in ((axes[0], bounds, "40 solutions"), (axes[1], found.bounds, "and a selection to 0.01")):
        lower, upper = (np.append(bound, bound[-1]) for bound in (shown.lower, shown.upper))
        worse = lower > found.error - 0.01 if shown is found.bounds else lower > upper.min()
        for where, colour, text in ((~worse, "C0", "may be best"), (worse, "0.6", "proven not to be better")):
            band = np.where(where, lower, np.nan), np.where(where, upper, np.nan)
            ax.fill_between(
                shown.lambdas / path.lambdas[0], *band, step="post", color=colour, alpha=0.4, lw=0, label=text
            )
        ax.set(xscale="log", title=f"{name}: {title}", xlabel="lambda / lambda_max", ylim=(0, 3 * found.error + 0.05))
        ax.invert_xaxis()
    axes[1].plot(found.lam / path.lambdas[0], found.error, "C3o", label="chosen")
    axes[1].legend(fontsize="small")
    axes[0].set_ylabel("error of held-out points")
    target = Path(__file__).resolve().parents[1] / "docs/figures/selection.svg"
    figure.savefig(target, metadata={"Date": None})
    print(target.name, found)


def refit(X, y, i, lam, start):
    """Predict one point by a fit on the others."""
    rest = np.delete(np.arange(len(X)), i)
    problem = ts.Problem(X[rest], ts.knn_triplets(X[rest], y[rest], K, n_jobs=1), n_jobs=1)
    M = ts.solve(problem, lam, start=start).M
    delta = X[rest] - X[i]
    nearest = np.argsort(np.einsum("ij,ij->i", delta @ M, delta), kind="stable")[:3]
    classes, counts = np.unique(y[rest][nearest], return_counts=True)
    return classes[counts.argmax()]


def loo(name):
    X, y = load(name)[:2]
    path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, K), n_jobs=1))
    path.leave_one_out(0, X, y)  # loads kernels
    n = len(path)
    for t in (n // 3, n // 2, 2 * n // 3, 5 * n // 6, n - 1):
        found, seconds = timed(path.leave_one_out, t, X, y)
        some = np.random.default_rng(t).choice(len(X), min(REFITS, len(X)), replace=False)
        lam, M = float(path.lambdas[t]), path.M(t)
        votes, each = timed(lambda some=some, lam=lam, M=M: [refit(X, y, i, lam, M) for i in some])
        whole, other = each / len(some) * len(X), np.count_nonzero(np.array(votes) != found.predictions[some])
        print(f"{name:14s} {lam / path.lambdas[0]:8.2g} max {found.error:7.4f} {found.n_solves / len(X):12.1%} "
              f"{found.n_refits:10d} "
              f"{seconds:8.2f} {whole:9.1f} {whole / seconds:7.0f} {other:9d}", flush=True)  # fmt: skip


PARTS = {
    "figure": (figure, ""),
    "bounds": (bounds, f"{'':14s} {'ratio':>5s} {'lambdas':>7s} {'path, s':>8s} {'bounds, s':>9s} {'decided':>8s} "
                       f"{'best error':>16s}"),
    "select": (select, f"{'':14s} {'eps':>5s} {'balls':>9s} {'path, s':>8s} {'more, s':>8s} {'solved':>7s} "
                       f"{'evaluated':>9s} {'gap':>7s} ended by"),
    "cv": (cv, f"{'':14s} {'eps':>5s} {'plain, s':>8s} {'proven,s':>8s} {'ratio':>6s} {'error':>7s} {'gap':>7s} "
               f"{'left':>5s}"),
    "loo": (loo, f"{'':14s} {'lambda':>12s} {'error':>7s} {'solved again':>12s} {'to the end':>10s} {'seconds':>8s} "
                 f"{'refits, s':>9s} {'faster':>7s} {'otherwise':>9s}"),
}  # fmt: skip


@contextmanager
def skipping():
    try:
        yield
    except Missing as error:
        print(f"{error}: skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--data", nargs="+", default=NAMES, choices=list(DATA), metavar="NAME")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    work, head = PARTS[wanted.part]
    print(head)
    for name in wanted.data:
        with skipping():
            work(name)


if __name__ == "__main__":
    main()
