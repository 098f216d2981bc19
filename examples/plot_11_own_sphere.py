"""
An own sphere
=============

A sphere is a ball of metrics that is proven to hold the optimum. Here is one that triscreen does not have. For
alphas a, M(a) is the metric that minimises the Lagrangian, which is strongly convex and at the optimum no more than
the primal there; so with D(a) for its minimum, the dual, and M for any metric::

    (lam/2) |M(a) - M*|^2  <=  P(M*) - D(a)  <=  P(M) - D(a) = gap,

and the optimum ``M*`` lies within sqrt(2 gap / lam) of M(a). That is half of what the sphere "mid" is made of: it
should decide less than that one, but something.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts


def around_the_dual(cone, evaluation, lam):
    """The ball around M(a) with the radius of the gap, and a hair for rounding."""
    gap = evaluation.slack + cone.gap(evaluation.M, evaluation.dual_point, lam)
    return ts.Sphere(evaluation.projected(lam), float(np.sqrt(2 * gap / lam)) * (1 + 1e-9), "own")


X, y = load_wine(return_X_y=True)
X = scale(X)
problem = ts.Problem(X, ts.knn_triplets(X, y, k=10))
lam = 0.05 * problem.lambda_max()

# %%
# A function is all that is needed. The result is certified over all triplets, whatever a sphere decides.

shares = {}
for name, sphere in (("own", around_the_dual), ("dgb", "dgb"), ("mid", "mid")):
    sol = ts.solve(problem, lam, solver="bb", screening=ts.Screening(sphere, every=2))
    decided = np.cumsum([event["L"] + event["R"] for event in sol.screening]) / problem.triplets.n_triplets
    shares[name] = ([event["n_iter"] for event in sol.screening], decided)
    print(f"{name:4s} {decided[-1]:6.1%} decided in the end, relative gap {sol.rel_gap:.1e}")

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, (iterations, decided) in shares.items():
    ax.plot(iterations, decided, marker="o", label=name)
ax.set(xlabel="iteration", ylabel="share decided")
ax.legend()
plt.show()

# %%
# Is it true? An optimum that is found far more accurately lies in every ball on the way.

exact = ts.solve(problem, lam, tol=1e-10)
# Where points do not span their space (constant features, say), spheres are seen in a basis of what they span.
optimum = exact.M if problem.basis is None else problem.basis.T @ exact.M @ problem.basis


def check(ball):
    """Look into every ball on the way of a solve."""
    inside = []

    def looked_at(cone, evaluation, lam):
        sphere = ball(cone, evaluation, lam)
        inside.append(np.linalg.norm(optimum - sphere.center) <= sphere.radius + exact.radius)
        return sphere

    sol = ts.solve(problem, lam, solver="bb", screening=ts.Screening(looked_at, every=1))
    print(f"{sum(inside)} of {len(inside)} balls hold it, relative gap {sol.rel_gap:.1e}")
    return inside


inside = check(around_the_dual)

# %%
# And if it is false? One with a twentieth of the radius decides what it should not. Its balls do not hold the optimum,
# and the gap, which is recomputed over all triplets at the end, tells that this is no optimum: nothing that a sphere
# claims is believed. (One that is only a little too small may never decide a triplet wrongly; then only looking into
# the balls shows it.)


def too_small(cone, evaluation, lam):
    """The ball around M(a), with a twentieth of the radius."""
    true = around_the_dual(cone, evaluation, lam)
    return ts.Sphere(true.center, true.radius / 20, "too small")


with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always", ts.ConvergenceWarning)
    check(too_small)
print(told[0].message)
