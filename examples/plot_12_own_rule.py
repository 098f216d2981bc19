"""
An own rule
===========

A rule decides triplets that the sphere rule has left. Here is one that uses that M is positive semi-definite: u'Mu
- v'Mv is at most u'Mu, so a triplet is linear (zone L) already if::

    u'Qu + r |u|^2  <  1 - gamma        for the ball around Q with radius r,

whatever its positive pair does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

found = []


def near_negatives(engine, region, norms, zones):
    """Decide by the negative pair alone; values of pairs are off by at most ``errors``, |u|^2 by rounding."""
    squares = engine.distances(np.eye(engine.triplets.dim)) * (1 + 1e-12)
    most = region.values + region.errors + region.radius * squares
    left = np.flatnonzero(zones == 0)
    _, negative = engine.triplets.pair_numbers(zones == 0)
    linear = most[negative] < 1 - engine.loss.gamma
    zones[left[linear]] = 1  # zone L
    found.append((len(left), int(linear.sum())))


X, y = load_wine(return_X_y=True)
X = scale(X)
problem = ts.Problem(X, ts.knn_triplets(X, y, k=10))
lam = 0.5 * problem.lambda_max()
sol = ts.solve(problem, lam, solver="bb", screening=ts.Screening("dgb", rule=near_negatives, every=1))
print(sol.converged, found)

# %%
# It decides triplets that the sphere rule does not, as long as the ball is large. And it is safe: a solve that
# drops nothing finds the same metric, within what both have proven.

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
left, decided = np.array(found).T
ax.bar(range(1, len(left) + 1), left, label="left by the sphere rule", color="0.8")
ax.bar(range(1, len(left) + 1), decided, label="decided by ours")
ax.set(xlabel="screening", ylabel="triplets", yscale="symlog")
ax.legend()
plt.show()

again = ts.solve(problem, lam, tol=1e-9, screening=None)
print("the same metric:", np.linalg.norm(sol.M - again.M) <= sol.radius + again.radius)
