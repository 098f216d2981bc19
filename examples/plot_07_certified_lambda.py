"""
The best lambda, with a proof
=============================

Cross-validation looks at some lambdas and hopes about the rest. Between two neighbours on a path every optimal
metric lies in a ball that is known, so each held-out prediction is proven right or wrong for *all* lambdas in
between, or it stays open. (Ours, not the paper's.)
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

X, y = load_wine(return_X_y=True)
X = scale(X)
known, held_out = slice(0, None, 2), slice(1, None, 2)
problem = ts.Problem(X[known], ts.knn_triplets(X[known], y[known], k=5))
path = ts.solve_path(problem)
bounds = ts.validation_bounds(path, X[known], y[known], X[held_out], y[held_out], k=3)
print(bounds)

# %%
# The error of every lambda, between two step functions.

found = ts.select(path, bounds, eps=0.02)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
lower, upper, ends = bounds.lower[::-1], bounds.upper[::-1], bounds.lambdas[::-1]
ax.stairs(upper, ends, baseline=lower, fill=True, alpha=0.4, label="the error")
ax.axvline(found.lam, color="black", linestyle="--", label="chosen")
ax.set(xscale="log", xlabel="lambda", ylabel="validation error")
ax.invert_xaxis()
ax.legend()
plt.show()

# %%
# No lambda of the whole range is better by more than the gap.

print(f"lambda {found.lam:.3g}, error at most {found.error:.3f}, nothing is lower by more than {found.gap:.3f}")
