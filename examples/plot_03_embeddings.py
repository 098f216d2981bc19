"""
An adapter on frozen embeddings
===============================

A small network was trained to tell the digits 0 to 4 apart; then it is frozen. Its last hidden layer is an
embedding that has never seen a 5, 6, 7, 8 or 9. From some labels of these a metric is learned on top of it, which
stays close to the embedding where the labels say nothing (``prior="identity"``).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors
from sklearn.neural_network import MLPClassifier

import triscreen as ts

X, y = load_digits(return_X_y=True)
X, old = X / 16, y < 5
network = MLPClassifier((32,), max_iter=300, random_state=0).fit(X[old], y[old])
embedding = np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0)[~old]
topics = y[~old]
rows = np.random.default_rng(0).permutation(len(topics))
known, queries = rows[:300], rows[300:]


def precision(Z):
    """Share of the five nearest that are of the same kind as the query."""
    found = NearestNeighbors(n_neighbors=5).fit(Z[known]).kneighbors(Z[queries], return_distance=False)
    return float((topics[known][found] == topics[queries][:, None]).mean())


# %%
# The adapter is one matrix: what is stored can stay, or be mapped once.

adapter = ts.TripletMetric(prior="identity", lam_ratio=1e-3).fit(embedding[known], topics[known])
scores = {"frozen": precision(embedding), "adapted": precision(adapter.transform(embedding))}
print(f"adapter {adapter.components_.shape}, relative gap {adapter.rel_gap_:.1e}")
print({name: f"{score:.1%} of the five nearest" for name, score in scores.items()})

fig, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.bar(scores.keys(), scores.values())
ax.set(ylim=(0.5, 1), ylabel="of the five nearest, the same digit")
plt.show()
