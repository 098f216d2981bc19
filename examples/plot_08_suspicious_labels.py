"""
Suspicious labels
=================

At the optimum a triplet has a dual variable alpha between 0 (its loss is zero) and 1 (its margin is far below 1). A
point whose triplets nearly all have alpha 1, as an anchor, fits nowhere among the points of its class: its label
may be wrong. Ten labels are exchanged here on purpose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

X, y = load_wine(return_X_y=True)
X, labels = scale(X), y.copy()
wrong = np.random.default_rng(0).choice(len(y), 10, replace=False)
labels[wrong] = (y[wrong] + 1) % 3

triplets = ts.knn_triplets(X, labels, k=10)
problem = ts.Problem(X, triplets)
sol = ts.solve(problem, 0.01 * problem.lambda_max())

# %%
# Margins by the metric that was learned, and the alphas that they give.

anchor, positive, negative = triplets.indices().T
u, v = X[anchor] - X[negative], X[anchor] - X[positive]
margins = np.einsum("td,de,te->t", u, sol.M, u) - np.einsum("td,de,te->t", v, sol.M, v)
alpha = np.clip((1 - margins) / problem.loss.gamma, 0, 1)
suspicion = np.bincount(anchor, alpha, len(X)) / np.bincount(anchor, minlength=len(X))
ranked = np.argsort(-suspicion)
print(f"of the ten most suspicious points {len({*ranked[:10]} & {*wrong})} have a wrong label")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.bar(range(40), suspicion[ranked[:40]], color=["C3" if point in wrong else "C0" for point in ranked[:40]])
ax.set(xlabel="points, the most suspicious first (red: exchanged)", ylabel="mean alpha")
plt.show()
