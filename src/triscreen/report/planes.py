"""Pictures of points: the plane in which their classes lie farthest apart, where distances are those of a metric.

The plane is an orthogonal projection, so that no distance in it is larger than it is: of all planes V with V'V = I it
has the largest tr(V'BV), B being the scatter of the means of the classes. (The plane of linear discriminant analysis
does not depend on the metric, so it would be the same before and after learning; and the plane of the largest ratio of
scatter between and within classes is often a line.)
"""

from __future__ import annotations

import numpy as np

_REST = 1e-3  # of all scatter: with two classes the means lie on a line, and say nothing of a second direction


def plane_of(Z, codes=None):
    """Return the axes of the plane, two orthonormal rows; without classes (codes None, or one) the principal ones."""
    Z = Z - Z.mean(axis=0)
    if Z.shape[1] < 2:
        Z = np.hstack([Z, np.zeros((len(Z), 2 - Z.shape[1]))])
    total = Z.T @ Z
    if codes is None or len(np.unique(codes)) < 2:
        return np.linalg.eigh(total)[1][:, ::-1][:, :2].T
    _, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    means = np.zeros((len(counts), Z.shape[1]))
    np.add.at(means, codes, Z)
    means /= counts[:, None]
    between = (means * counts[:, None]).T @ means
    return np.linalg.eigh(between + _REST * total)[1][:, ::-1][:, :2].T


def flat(Z, axes):
    """Return the points in the plane, centred, of mean square 1."""
    Z = Z - Z.mean(axis=0)
    points = Z @ axes[:, : Z.shape[1]].T
    size = np.sqrt(np.square(points).mean())
    return points / size if size > 0 else points


def turned(points, like):
    """Return points in the plane, turned and mirrored to be close to others."""
    left, _, right = np.linalg.svd(points.T @ like)
    return points @ (left @ right)


def turned_one_by_one(views, last):
    """Return views of the points, each turned to be close to the one before."""
    found = np.empty((len(views), *last.shape), dtype=np.float32)
    for place, view in enumerate(views):
        found[place] = last = turned(view, last)
    return found
