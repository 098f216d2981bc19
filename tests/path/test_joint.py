"""What two neighbours are worth together: against the same written out, optima, and errors that are large."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import triscreen as ts
from problems import make_case
from triscreen.path.joint import Joint, change, joint
from triscreen.path.row import NUMBERS, Row


def element(rng, shape):
    F = rng.normal(size=shape)
    return F if len(shape) == 1 else F[:, :2]


class End:
    """A metric, a dual sum and a pull that are anybody's; as a row, with what its errors make of them."""

    def __init__(self, seed, lam, shape, N):
        rng = np.random.default_rng(seed)
        self.lam, self.N, self.factor = lam, N, element(rng, shape)
        self.M = np.square(self.factor) if len(shape) == 1 else self.factor @ self.factor.T
        other = element(rng, shape)
        self.H = np.square(other) if len(shape) == 1 else other @ other.T
        self.L, self.dual_sum = rng.uniform(5, 6), rng.uniform(1, 2)

    def row(self, M=None, H=None, **more):
        """Return the row that says this, computed from M and H that may be others."""
        M, H = self.M if M is None else M, self.H if H is None else H
        away, size = M - self.N, float(np.vdot(M - self.N, M - self.N))
        primal = self.L + 0.5 * self.lam * size
        dual = self.dual_sum - np.vdot(self.N, H) - np.vdot(H, H) / (2 * self.lam)
        numbers = dict.fromkeys(NUMBERS, 0.0)
        numbers |= {"lam": self.lam, "loss": self.L, "primal": primal, "dual": float(dual), "gap": float(primal - dual)}
        rest = away - H / self.lam
        numbers |= {"size": size, "square": float(np.vdot(H, H)), "away": float(np.vdot(rest, rest)), **more}
        return Row(**numbers, stopped_by="converged", factor=self.factor, events=[], floor=1e-9)


def together(one, two, lam):
    """(M, primal, gap) of the mixture at lam, by the header."""
    th = (one.lam - lam) / (one.lam - two.lam)
    p = th * two.lam / lam
    M, H = (1 - p) * one.M + p * two.M, (1 - th) * one.H + th * two.H
    primal = (1 - p) * one.L + p * two.L + 0.5 * lam * np.sum((M - one.N) ** 2)
    dual = (1 - th) * one.dual_sum + th * two.dual_sum - np.vdot(one.N, H) - np.vdot(H, H) / (2 * lam)
    return M, primal, primal - dual


def ends(seed, shape, prior):
    N = np.zeros(shape)
    if prior:
        F = element(np.random.default_rng(99 + seed), shape)
        N = np.square(F) if len(shape) == 1 else F @ F.T
    return End(2 * seed, 3.0, shape, N), End(2 * seed + 1, 1.7, shape, N)


def rows_of(one, two, **more):
    below = two.row(changes=((one.lam, float(np.sum((one.H - two.H) ** 2))),), **more)
    return one.row(**more), below


SHAPES = [(3, 3), (4,)]


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_gap_of_the_mixture(seed, shape, prior):
    one, two = ends(seed, shape, prior)
    both = Joint(*rows_of(one, two))
    for lam in np.linspace(two.lam, one.lam, 9):
        M, primal, gap = together(one, two, lam)
        factor = both.factor_at(lam)
        np.testing.assert_allclose(np.square(factor) if factor.ndim == 1 else factor @ factor.T, M, atol=1e-12)
        assert both.primal_at(lam) == pytest.approx(primal, rel=1e-12)
        assert gap <= both.gap_at(lam) <= gap + 1e-9 * primal


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("what", ["M", "H"])
@pytest.mark.parametrize("seed", range(6))
def test_large_errors_are_covered(seed, what, shape, prior):
    """Rows whose numbers come from an M or an H that is off by as much as they say."""
    one, two = ends(seed, shape, prior)
    rng, size = np.random.default_rng(seed), 0.3
    off = []
    for _ in range(2):
        E = rng.normal(size=shape)
        E = E + E.T if E.ndim == 2 else E
        off.append(size * E / np.linalg.norm(E))
    exact = [together(one, two, lam)[2] for lam in np.linspace(two.lam, one.lam, 9)[1:-1]]
    if what == "M":  # a prior's error is one of M - N, and of lam N in the pull
        above, below = (end.row(M=end.M + E, prior_error=size) for end, E in zip((one, two), off, strict=True))
        # The error of an objective is that of the gap, which rows say by themselves.
        above, below = (
            replace(row, rounding=abs(row.gap - end.row().gap))
            for row, end in zip((above, below), (one, two), strict=True)
        )
    else:
        above, below = (end.row(H=end.H + E, error=size) for end, E in zip((one, two), off, strict=True))
    H = [end.H + (E if what == "H" else 0) for end, E in zip((one, two), off, strict=True)]
    below = replace(below, changes=((one.lam, float(np.sum((H[0] - H[1]) ** 2))),))
    both = Joint(above, below)
    for lam, gap in zip(np.linspace(two.lam, one.lam, 9)[1:-1], exact, strict=True):
        assert gap <= both.gap_at(lam)


@pytest.mark.parametrize("shape", SHAPES)
def test_whether_it_serves_is_what_a_fine_grid_says(shape):
    served = 0
    for seed in range(30):
        one, two = ends(seed, shape, False)
        two.factor, two.M, two.H = one.factor, one.M, one.H * (two.lam / one.lam) ** (seed % 3)
        both = Joint(*rows_of(one, two))
        low, high = 1.8 + 0.01 * seed, 2.9
        grid = np.linspace(low, high, 400)
        th = (one.lam - grid) / (one.lam - two.lam)
        least = (1 - th) * both.above.dual + th * both.below.dual
        gaps = np.array([both.gap_at(lam) for lam in grid])
        for floor in (1e-9, 50.0):
            both.above = replace(both.above, floor=floor)
            needed = min((gaps / least).max() if least.min() > 0 else np.inf, (gaps / floor).max())
            if np.isfinite(needed):
                assert both.serves(needed * 1.001, low, high)
            assert not both.serves(needed * 0.999 if np.isfinite(needed) else (gaps / floor).max() * 0.999, low, high)
            served += 1
    assert served == 60


@pytest.mark.parametrize("prior", [None, 3])
@pytest.mark.parametrize("gamma", [0.05, 0.0])
@pytest.mark.parametrize("cone", ["psd", "diagonal"])
def test_no_optimum_is_lower_than_it_says(cone, gamma, prior, tmp_path):
    case = make_case(5, n=20, d=3, m=120, gamma=gamma, cone=cone, prior=prior, weighted=True)
    path = ts.solve_path(case.problem, ratio=0.6, n_lambdas=6, tol=1e-5 if gamma else 1e-4)
    ts.save(path, tmp_path / "a.path")
    loaded, rng = ts.load(tmp_path / "a.path"), np.random.default_rng(0)
    ratios = []
    for above, below in pairwise(loaded._rows):
        both = joint(above, below)
        for lam in rng.uniform(below.lam, above.lam, 2):
            found = loaded.at(lam)
            best = ts.solve(case.problem, lam, tol=1e-9 if gamma else 1e-7)
            hair = 1e-9 * best.primal
            mixed = case.problem.certificate(loaded._metric(both.factor_at(lam)), lam)
            assert mixed.primal - best.primal <= both.gap_at(lam) + hair
            assert mixed.primal <= both.primal_at(lam) + hair
            assert case.problem.certificate(found.M, lam).primal - best.primal <= found.gap + found.rounding + hair
            single = min(row.gap_at(lam) for row in (above, below))
            assert found.gap <= single * (1 + 1e-9) + hair
        middle = np.sqrt(above.lam * below.lam)
        ratios.append(both.gap_at(middle) / min(row.gap_at(middle) for row in (above, below)))
    assert np.median(ratios) < 0.6


def test_rows_that_do_not_know_each_other_are_not_taken_together(tmp_path):
    case = make_case(5)
    path = ts.solve_path(case.problem, ratio=0.7, n_lambdas=6, tol=1e-7)
    rows = path._rows
    assert change(rows[0], rows[1]) is not None
    assert change(rows[0], rows[2]) is not None  # two back are known
    assert joint(rows[0], rows[3]) is None
    assert joint(rows[1], rows[0]) is None
    assert joint(rows[0], replace(rows[1], changes=())) is None
    ts.save(path, tmp_path / "a.path")
    loaded = ts.load(tmp_path / "a.path")
    assert [change(*pair) for pair in pairwise(loaded._rows)] == [change(*pair) for pair in pairwise(rows)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("prior", [False, True])
def test_every_error_is_in_it(shape, prior):
    """Term by term, with errors that are made up, and large."""
    one, two = ends(1, shape, prior)
    rng = np.random.default_rng(2)
    rounding, error, of_N = rng.uniform(0.01, 0.05, (3, 2))
    of_N = of_N if prior else np.zeros(2)
    above, below = rows_of(one, two)
    rows = [
        replace(row, rounding=r, error=e, prior_error=n, floor=float(prior))
        for row, r, e, n in zip((above, below), rounding, error, of_N, strict=True)
    ]
    lam = np.array([row.lam for row in rows])
    away, pull, far = (np.sqrt([getattr(row, name) for row in rows]) for name in ("size", "square", "away"))
    dM, dH = of_N, error + lam * of_N
    N = max(np.linalg.norm(end.M) + a for end, a in zip((one, two), away, strict=True)) if prior else 0.0
    both = Joint(*rows)
    assert both.gaps == pytest.approx([row.gap for row in rows] + rounding + (far + dH / lam) * dH, rel=1e-9)
    d = [row.dual + row.square / (2 * row.lam) for row in rows]
    lost = 0.5 * (lam[1] * away[1] ** 2 - lam[0] * away[0] ** 2) - (d[1] - d[0]) + N * dH.sum()
    lost += (lam * (away + dM) * dM + (pull + dH) * dH / lam + rounding).sum()
    moved, pulled = np.linalg.norm(one.M - two.M) - dM.sum(), np.linalg.norm(one.H - two.H) - dH.sum()
    saved = 0.5 * (lam[1] * moved**2 + pulled**2 / lam[0])
    assert both.k == pytest.approx((1 - lam[1] / lam[0]) * lost - saved, rel=1e-9)


def test_a_parabola_is_below_where_it_is():
    both, rng, inside = object.__new__(Joint), np.random.default_rng(0), 0
    for _ in range(500):
        both.gaps, both.r, both.k = tuple(rng.uniform(0, 0.3, 2)), rng.uniform(0.2, 1), rng.uniform(-0.5, 2)
        (start, end), (D1, D2) = np.sort(rng.uniform(0, 1, 2)), rng.uniform(0, 1, 2)
        th = np.linspace(start, end, 2001)
        u = 1 - th * (1 - both.r)  # lam/lam1
        gap = (1 - th) * both.gaps[0] + th * both.r * both.gaps[1] + th * (1 - th) * both.k
        rest = ((1 - th) * D1 + th * D2) * u - gap
        if abs(rest.min()) > 1e-5:
            assert both._stays_below(D1, D2, start, end) == (rest.min() > 0)
            inside += rest.min() < 0 < min(rest[0], rest[-1])
    assert inside > 10
