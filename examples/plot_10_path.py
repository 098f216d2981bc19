"""
A whole path, stopped and resumed
=================================

All lambdas from the one where the metric is known in closed form down to where the loss settles: each metric with
its gap over all triplets, and most triplets proven irrelevant on the way.
"""

import tempfile

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

X, y = load_wine(return_X_y=True)
X = scale(X)
problem = ts.Problem(X, ts.knn_triplets(X, y, k=20))

# %%
# A checkpoint is a folder. Whatever ends a run, the same call goes on from there, to the same bits.

with tempfile.TemporaryDirectory() as folder:
    first = ts.solve_path(problem, checkpoint=folder, callback=lambda state: state.n_lambdas == 20)
    path = ts.solve_path(problem, checkpoint=folder, screening="auto")
print(first)
print(path)

# %%
# What a path draws by itself.

fig, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
path.plot_gaps(axes[0])
path.plot_losses(axes[1])
path.plot_spectrum(-1, axes[2])
plt.show()

# %%
# A metric for a lambda in between has a certified gap, too; ``guarantee=`` bounds it for all of them.

print(path.at(0.5 * path.lambdas[10] + 0.5 * path.lambdas[11]).rel_gap)
