"""
Which features matter
=====================

A diagonal metric has one weight a feature, none negative, and many of them are zero. Here wine gets thirteen
features more, which are pure noise: along the path one sees when each feature comes in. Triplets are all there are
(`all_triplets`), so that no neighbour is chosen by the noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

data = load_wine()
noise = np.random.default_rng(0).normal(size=data.data.shape)
X = np.hstack([scale(data.data), noise])
problem = ts.Problem(X, ts.all_triplets(X, data.target), cone="diagonal")
path = ts.solve_path(problem, ratio=0.8)
print(path)

# %%
# Of a diagonal cone every metric is the vector of its weights.

weights = np.array([path.M(t) for t in range(len(path))])
share = weights / weights.sum(axis=1, keepdims=True)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(path.lambdas, share[:, 13:], color="0.8", linewidth=1)
lines = ax.plot(path.lambdas, share[:, :13])
best = np.argsort(-share[-1, :13])[:5]
ax.legend([lines[k] for k in best], [data.feature_names[k] for k in best])
ax.set(xscale="log", xlabel="lambda", ylabel="share of the weight (grey: noise)")
ax.invert_xaxis()
plt.show()

# %%
# Nearly all of the weight is on real features, over the whole path.

noise = share[:, 13:]
print(f"weight on noise: at most {noise.sum(axis=1).max():.1%}; noise features at zero: {(noise[-1] == 0).sum()} of 13")
