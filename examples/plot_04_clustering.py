"""
Clustering with some labels
===========================

Handwritten digits, two thirds of them without labels. The metric is learned from the third that has some, and the
rest is clustered in its space.
"""

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, confusion_matrix
from sklearn.model_selection import train_test_split

import triscreen as ts

X, y = load_digits(return_X_y=True)
labelled, rest, y_labelled, y_rest = train_test_split(X / 16, y, train_size=1 / 3, stratify=y, random_state=0)
metric = ts.TripletMetric().fit(labelled, y_labelled)

# %%
# How well do ten clusters agree with the ten digits? 1 is all, 0 is chance.

fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
scores = {}
for ax, (name, Z) in zip(axes, {"Euclid": rest, "learned": metric.transform(rest)}.items(), strict=True):
    clusters = KMeans(10, n_init=10, random_state=0).fit_predict(Z)
    scores[name] = float(adjusted_rand_score(y_rest, clusters))
    ax.imshow(confusion_matrix(y_rest, clusters), cmap="Blues")
    ax.set(title=f"{name}: {scores[name]:.2f}", xlabel="cluster", ylabel="digit")
print(scores)
plt.show()
