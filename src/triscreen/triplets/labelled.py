"""From labels to triplets: what estimators and the command line both need."""

from __future__ import annotations

from triscreen._utils.validation import as_choice
from triscreen.errors import InputError
from triscreen.triplets.all import all_triplets
from triscreen.triplets.given import given_triplets
from triscreen.triplets.knn import knn_triplets

KINDS = ("knn", "lmnn", "all")


def labelled_triplets(X, y, kind, k, weights=None, n_jobs=None, neighbors=None):
    """Return the triplets of labelled points.

    Parameters
    ----------
    X : array, shape (n, d)
        Points that neighbours are chosen among.
    y : array, shape (n,)
        Labels.
    kind : {"knn", "lmnn", "all"}
        "knn": k nearest of the same class times k nearest of other classes. "lmnn": k nearest of the same class against
        every point of other classes. "all": every triplet.
    k : int
        Neighbours; nothing where ``kind`` is "all".
    weights : array, shape (n,), optional
        An estimator's sample_weight: of each triplet that the point is the anchor of. 0: it is no anchor.
    n_jobs : int or None
        Threads for the search of neighbours.
    neighbors : optional
        As for `knn_triplets`; of no use, and refused, where ``kind`` is "all".

    Returns
    -------
    TripletSet
        Listed where "knn" has weights, blocks where it has none; never listed for the others.
    """
    as_choice(kind, "kind", KINDS)
    if kind == "all":
        if neighbors is not None:
            raise InputError("neighbors is given: triplets='all' takes every triplet, choose 'knn' or 'lmnn'")
        return all_triplets(X, y, weights=weights, n_jobs=n_jobs)
    if kind == "lmnn":
        return all_triplets(X, y, k, weights, n_jobs=n_jobs, neighbors=neighbors)
    T = knn_triplets(X, y, k, n_jobs=n_jobs, neighbors=neighbors)
    if weights is None:
        return T
    indices = T.indices()
    keep = weights[indices[:, 0]] > 0
    if not keep.any():
        raise InputError("sample_weight is 0 for every point of a class of two points or more: no triplet is left")
    return given_triplets(indices[keep], weights[indices[keep, 0]])
