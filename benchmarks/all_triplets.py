"""All triplets without a list: how the cost grows, the paper's small sets, and 9e10 triplets to a certified optimum.

    python benchmarks/all_triplets.py [growth] [paper] [large] [--figure docs/figures/all_triplets.svg]

growth: seconds of one evaluation (loss, gradient, dual, gap) of mnist reduced to 32 dimensions, n = 500 ... 20,000,
each in a process of its own for its peak memory, next to the same triplets as a list; paper: iris and wine, 90 % of the
points in [-1, 1], whole paths; large: 10,000 points at lambda_max * 1e-3, with and without screening. Data sets of the
paper are read from the folder TRISCREEN_DATA; what is missing is skipped.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import triscreen as ts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script

from benchmarks.cells.scaling import peak_megabytes
from benchmarks.datasets import DATA, Missing, load, subsample

SIZES = (500, 1000, 2000, 5000, 10_000, 20_000)
LISTED = (500, 1000, 2000, 5000)


def mnist(n):
    """Return n points of mnist, reduced to 32 dimensions, or None if it is not there."""
    try:
        X, y = load("mnist")
    except Missing as error:
        print(f"{error}: skipped")
        return None
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    return X[rows], y[rows]


def one_size(n, kind, rows):
    """Measure one evaluation, in this process; print the result as JSON."""
    X, y = np.load(rows)["X"], np.load(rows)["y"]
    X, y = X[:n], y[:n]
    warm = slice(0, 60)
    for part, repeats in ((warm, 1), (slice(0, n), 5 if n < 5000 else 3)):  # the first one loads kernels
        before = peak_megabytes()
        T = ts.all_triplets(X[part], y[part]) if kind == "sorted" else ts.knn_triplets(X[part], y[part], k=None)
        problem = ts.Problem(X[part], T)
        M = problem._sum_of_h[2].plus / (1e-2 * problem.lambda_max())
        best = np.inf
        for _ in range(repeats if kind == "sorted" or n < 2000 else 2):
            begin = time.perf_counter()
            gap = problem.certificate(problem.from_core(M), problem._lambda_max).gap
            best = min(best, time.perf_counter() - begin)
    print(json.dumps({"n": n, "kind": kind, "seconds": best, "triplets": T.n_triplets, "pairs": T.n_pairs, "gap": gap,
                      "megabytes": peak_megabytes() - before}))  # fmt: skip


def growth(figure):
    """Print seconds, exponents and memory for growing n; draw them."""
    data = mnist(max(SIZES))
    if data is None:
        return
    rows = Path(sys.argv[0]).with_name(".all_triplets.npz")
    np.savez(rows, X=data[0], y=data[1])
    print("one evaluation of mnist, 32 dimensions, at M = S_+/(lambda_max/100); its gap agrees where both were run")
    results = []
    try:
        for kind, sizes in (("sorted", SIZES), ("listed", LISTED)):
            for n in sizes:
                command = [sys.executable, __file__, "--one", str(n), kind, str(rows)]
                out = subprocess.run(command, check=True, capture_output=True, text=True)
                got = json.loads(out.stdout)
                last = results[-1] if results and results[-1]["kind"] == kind else None
                slope = "" if last is None else f"{_slope(last, got):5.2f}"
                results.append(got)
                seconds = got["seconds"]
                print(
                    f"  {kind:7s} n = {n:6d}  {got['triplets']:.3e} triplets  {seconds:9.4f} s  exponent {slope:5s}  "
                    f"{got['triplets'] / seconds:.2e} triplets/s  {seconds / got['pairs'] * 1e9:6.1f} ns a pair  peak "
                    f"{got['megabytes']:7.0f} MB  gap {got['gap']:.12e}",
                    flush=True,
                )
    finally:
        rows.unlink()
    fit = np.polyfit(*np.log([[r["n"], r["seconds"]] for r in results if r["kind"] == "sorted"]).T, 1)[0]
    print(f"  growth exponent, sorted, all sizes: {fit:.2f}")
    if figure:
        draw(results, figure)


def _slope(a, b):
    return math.log(b["seconds"] / a["seconds"]) / math.log(b["n"] / a["n"])


def draw(results, figure):
    """Draw cost against n."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "svg.hashsalt": "triscreen", "svg.fonttype": "none"})
    fig, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for kind, colour, marker in (("listed", "#b3443c", "s"), ("sorted", "#2a6f97", "o")):
        rows = [r for r in results if r["kind"] == kind]
        n, seconds = [r["n"] for r in rows], [r["seconds"] for r in rows]
        ax.loglog(n, seconds, marker=marker, color=colour, label=kind)
        power = math.log(seconds[-1] / seconds[-2]) / math.log(n[-1] / n[-2])
        ax.annotate(f"{kind}: $n^{{{power:.1f}}}$, {rows[-1]['triplets']:.0e} triplets", (n[-1], seconds[-1]),
                    xytext=(-8, 6), textcoords="offset points", color=colour, ha="right")  # fmt: skip
    ax.margins(y=0.15)
    ax.set_xlabel("points")
    ax.set_ylabel("seconds for one evaluation")
    ax.set_title("All triplets of mnist (32 dimensions): cost against n")
    ax.grid(visible=True, which="both", alpha=0.25)
    ax.legend(frameon=False)
    Path(figure).parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(figure, metadata={"Date": None})
    print(f"  figure: {figure}")


def paper():
    """Whole paths of iris and wine with all triplets."""
    for name in ("iris", "wine"):
        X, y = load(name)
        tops = []
        for seed in range(5):
            part = subsample(X, y, seed=seed)
            tops.append(ts.Problem(part[0], ts.all_triplets(*part)).lambda_max())
        spread = f"{min(tops):.3g} to {max(tops):.3g}"
        print(
            f"{name}: lambda_max {np.mean(tops):.3g} (five subsamples: {spread}), paper "
            f"{DATA[name].paper.lambda_max:.2g}"
        )
        part = subsample(X, y)
        problems = {
            "all": ts.Problem(part[0], ts.all_triplets(*part)),
            "listed": ts.Problem(part[0], ts.knn_triplets(*part, k=None)),
        }
        for kind, problem in problems.items():
            for title, screening in (("auto", "auto"), ("none", None)):
                best = np.inf
                for _ in range(3):
                    begin = time.perf_counter()
                    path = ts.solve_path(problem, screening=screening)
                    best = min(best, time.perf_counter() - begin)
                worst = max(c.rel_gap for c in path.certify())
                print(
                    f"  {kind:7s} {title:5s} {len(path)} lambdas {path.lambdas[0]:.3g} to {path.lambdas[-1]:.3g}  "
                    f"{path.passes.sum():7.1f} passes {best:6.2f} s  decided {path.screening_rates.mean():5.1%}  "
                    f"worst gap, recomputed, {worst:.1e}",
                    flush=True,
                )


def large(n=10_000):
    """One certified optimum over 9e10 triplets."""
    data = mnist(n)
    if data is None:
        return
    problem = ts.Problem(data[0], ts.all_triplets(*data))
    lam = 1e-3 * problem.lambda_max()
    print(f"{problem!r}\n  estimate: {problem.estimate()}\n  lambda = lambda_max * 1e-3 = {lam:.4g}")
    for tol in (1e-4, 1e-6):
        for title, screening in (
            ("none", None),
            ("auto", "auto"),
            ("mid, every 5", ts.Screening("mid", every=5, at_start=False)),
        ):
            begin = time.perf_counter()
            sol = ts.solve(problem, lam, tol=tol, screening=screening)
            left = sol.screening[-1]["undecided"] / problem.triplets.n_triplets if sol.screening else 1.0
            print(
                f"  tol {tol:.0e}  {title:13s} {time.perf_counter() - begin:6.1f} s  {sol.n_iter} iterations  "
                f"{sol.passes:.1f} passes  relative gap {sol.rel_gap:.2e} (rounding "
                f"{sol.rounding / abs(sol.primal):.0e})  undecided {left:.2%}  peak {peak_megabytes():.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        one_size(int(arguments[1]), arguments[2], arguments[3])
        sys.exit()
    figure = arguments[arguments.index("--figure") + 1] if "--figure" in arguments else None
    wanted = [name for name in arguments if name in ("growth", "paper", "large")] or ["growth", "paper", "large"]
    for name in wanted:
        growth(figure) if name == "growth" else {"paper": paper, "large": large}[name]()
