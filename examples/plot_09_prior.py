"""
Yesterday's metric as today's prior
===================================

New data come in, few of them. A metric that is learned from them alone forgets what was known; one that begins at
the old metric stays close to it where the new data say nothing. (The prior is ours, not the paper's.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier

import triscreen as ts

X, y = load_digits(return_X_y=True)
X = X / 16
rows = np.random.default_rng(0).permutation(len(X))
before, today, later = rows[:600], rows[600:700], rows[700:]
old = ts.TripletMetric(lam_ratio=1e-2).fit(X[before], y[before])

# %%
# A hundred digits of today are all that neighbours can be looked for among.

metrics = {
    "Euclid": None,
    "old": old,
    "new": ts.TripletMetric(lam_ratio=1e-2).fit(X[today], y[today]),
    "new, from the old": ts.TripletMetric(prior=FrozenEstimator(old), lam_ratio=1e-2).fit(X[today], y[today]),
}
errors = {}
for name, metric in metrics.items():
    Z = X if metric is None else metric.transform(X)
    errors[name] = 1 - KNeighborsClassifier(3).fit(Z[today], y[today]).score(Z[later], y[later])
    print(f"{name:18s} {errors[name]:.1%}")

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.barh(list(errors), list(errors.values()))
ax.set_xlabel("error")
plt.show()
