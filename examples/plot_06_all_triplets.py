"""
All triplets, never listed
==========================

Labelled points have about n^3 triplets. One need not choose among them: the optimum over every single one costs
about as much as looking at every *pair*.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import triscreen as ts

X, y = load_digits(return_X_y=True)
X = X / 16
print(f"{ts.triplet_count(y):,} triplets")

# %%
# Before any work: what would a pass take?

problem = ts.Problem(X, ts.all_triplets(X, y))
print(problem.estimate())

# %%
# The optimum over all of them, certified, and how it compares with that of k nearest neighbours: here on a fifth of
# the points, so that the page is built in some seconds.

some = slice(None, None, 5)
listed = ts.Problem(X[some], ts.knn_triplets(X[some], y[some], k=5))
every = ts.Problem(X[some], ts.all_triplets(X[some], y[some]))
metrics = {}
for name, part in (("5 nearest", listed), ("all", every)):
    sol = ts.solve(part, 0.01 * part.lambda_max(), tol=1e-4)
    metrics[name] = sol.M
    print(f"{name:10s} {part.triplets.n_triplets:12,} triplets, relative gap {sol.rel_gap:.1e}")

# %%
# Which pixels weigh: the diagonals of both metrics.

fig, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for ax, (name, M) in zip(axes, metrics.items(), strict=True):
    ax.imshow(M.diagonal().reshape(8, 8), cmap="magma")
    ax.set(title=name, xticks=[], yticks=[])
plt.show()
