"""Scaling of features, one step before a metric: what `triscreen fit` keeps in its models."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from triscreen._utils.validation import as_choice, blocks_of_rows
from triscreen.errors import InputError, ScaleWarning

SCALINGS = ("none", "minmax", "standard", "libsvm")


# Where half of the features have together less than this share of the variance, the others decide alone.
_NOTHING = 1e-3


def warn_of_scales(X):
    """Warn where features are of such different sizes that half of them hardly enter any distance."""
    mean = X.mean(axis=0, dtype=float)
    variances = np.sort(sum(((X[rows] - mean) ** 2).sum(axis=0) for rows in blocks_of_rows(X)) / len(X))
    variances = variances[variances > 0]
    least = variances[: (len(variances) + 1) // 2].sum()
    if len(variances) > 1 and least < _NOTHING * variances.sum():
        warnings.warn(
            f"half of the {len(variances)} features that vary have together {least / variances.sum():.1g} of the "
            "variance, so that the others alone decide who is a neighbour: scale them first (a pipeline with "
            "ts.Scaling() or StandardScaler), or begin with prior='within'",
            ScaleWarning,
            stacklevel=4,
        )


class Scaling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Shift and stretch each feature: x -> (x - shift_) * factor_. Unlike scikit-learn's scalers `ts.save` knows it.

    Parameters
    ----------
    kind : {"standard", "minmax", "libsvm", "none"}
        Mean 0 and standard deviation 1; the interval [0, 1]; the interval [-1, 1]; as it is. A feature that is constant
        becomes 0.

    Attributes
    ----------
    shift_, factor_ : arrays, shape (d,)
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    References
    ----------
    scikit-learn, "Preprocessing data"; saved without pickle: docs/cli.md.

    Examples
    --------
    >>> import triscreen as ts
    >>> ts.Scaling("libsvm").fit_transform([[0.0, 7.0], [1.0, 7.0], [4.0, 7.0]]).tolist()
    [[-1.0, 0.0], [-0.5, 0.0], [1.0, 0.0]]
    """

    # What a fit leaves, for type checkers.
    shift_: np.ndarray
    factor_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(self, kind: str = "standard") -> None:
        self.kind = kind

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, feature_names: Sequence[str] | None = None) -> Scaling:
        """Learn shift and factor.

        Parameters
        ----------
        X : array, shape (n, d)
        y : ignored
        feature_names : list of str, optional
            Names of the features, where X is not a table that knows them.

        Returns
        -------
        self
        """
        as_choice(self.kind, "kind", SCALINGS)
        X = validate_data(self, X, dtype=np.float64)
        if feature_names is not None:
            if len(feature_names) != X.shape[1]:
                raise InputError(f"feature_names has {len(feature_names)} names: X has {X.shape[1]} features")
            self.feature_names_in_ = np.array([str(name) for name in feature_names], dtype=object)
        low, high = X.min(axis=0), X.max(axis=0)
        self.shift_, width = {
            "none": lambda: (np.zeros(X.shape[1]), np.ones(X.shape[1])),
            "minmax": lambda: (low, high - low),
            "standard": lambda: (X.mean(axis=0), X.std(axis=0)),
            "libsvm": lambda: (low / 2 + high / 2, high / 2 - low / 2),
        }[self.kind]()
        self.factor_ = np.ones(X.shape[1])
        if self.kind != "none":
            # A mean of equal numbers is not always that number; and 1 / width must not overflow.
            constant = (low == high) | (width < np.finfo(float).tiny)
            self.shift_ = np.where(constant, low, self.shift_)
            np.divide(1.0, width, out=self.factor_, where=~constant)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return (X - shift_) * factor_, computed in float64; float32 stays float32."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return ((X - self.shift_) * self.factor_).astype(X.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
