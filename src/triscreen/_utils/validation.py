"""From what users pass to what the engine needs; each refusal is one sentence."""

from __future__ import annotations

import math
import numbers

import numpy as np

from triscreen._utils.words import shortened
from triscreen.errors import InputError

# |x|^4 must neither overflow nor vanish in float64; data outside this range is a mistake of units.
_LARGEST, _SMALLEST = 1e70, 1e-70
_AT_ONCE = 1 << 20  # numbers that are looked at at a time


def as_numbers(values, name, narrow=False):
    """Return a float64 array, or refuse text, dates, complex numbers, masks and ragged rows.

    narrow: float32 stays, and what float32 holds exactly becomes that.
    """
    if type(values).__module__.partition(".")[0] == "triscreen" and hasattr(values, "M"):  # a Solution, a Path
        raise InputError(f"{name} is a {type(values).__name__}: pass its .M{'(t)' if callable(values.M) else ''}")
    try:
        array = np.asarray(values)
    except ValueError as err:
        raise InputError(f"{name} is not a rectangular array of numbers ({err})") from None
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked entries: fill them first")
    if array.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in array.ravel()):
        raise InputError(f"{name} holds text: {name} must hold numbers only")
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} has dtype {array.dtype}: {name} must hold real numbers only")
    wanted = np.float32 if narrow and np.can_cast(array.dtype, np.float32) else np.float64
    try:
        return array.astype(wanted, copy=False)
    except (TypeError, ValueError) as err:
        raise InputError(f"{name} has dtype {array.dtype}: {name} must hold real numbers only ({err})") from None


def as_points(X, name="X", narrow=False, least=2):
    """Return X as a finite, C-ordered float64 array (n, d), without copying where it is one already.

    narrow: float32 stays what it is, be it in memory or mapped from a file, and smaller types become float32; least: so
    many points, one or two.
    """
    if hasattr(type(X), "tocsr"):  # of the type: a table may have a column of that name
        raise InputError(f"{name} is a sparse matrix: pass a dense array, such as {name}.toarray()")
    X = as_numbers(X, name, narrow)
    if X.ndim != 2:
        raise InputError(f"{name} has shape {X.shape}: {name} must be two-dimensional, (n_points, n_features)")
    if X.shape[0] < least:
        enough = "one point is" if least == 1 else "two points are"
        raise InputError(f"{name} has shape {X.shape}: at least {enough} needed")
    if X.shape[1] < 1:
        raise InputError(f"{name} has shape {X.shape}: at least one feature is needed")
    X = np.ascontiguousarray(X)
    for rows in blocks_of_rows(X):
        good = np.isfinite(X[rows])
        if not good.all():
            row, col = np.argwhere(~good)[0]
            row += rows.start
            raise InputError(f"{name}[{row}, {col}] is {X[row, col]}: {name} must be finite, without NaN or infinity")
    return check_scale(X, name)


def check_scale(X, name):
    """Return X, or refuse a scale that float64 has no lambda for."""
    largest = max((float(np.abs(X[rows]).max(initial=0.0)) for rows in blocks_of_rows(X)), default=0.0)
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise InputError(
            f"{name} has a largest magnitude of {largest:.3g}: rescale it to lie between {_SMALLEST} and {_LARGEST}"
        )
    return X


def blocks_of_rows(X):
    """Cut rows into slices of a few megabytes: what is computed from all of X at once is as large as X."""
    rows = max(1, _AT_ONCE // max(1, X[:1].size))
    return (slice(start, start + rows) for start in range(0, len(X), rows))


def as_labels(y, n_points):
    """Return (codes, classes): y as integers 0..c-1 and the class each stands for."""
    try:
        y = np.asarray(y)
    except ValueError as err:
        raise InputError(f"y is not a plain list of labels ({err})") from None
    if y.ndim != 1:
        raise InputError(f"y has shape {y.shape}: y must be one-dimensional, one label per point")
    if not len(y):
        raise InputError("y has no labels: one label per point is needed")
    if len(y) != n_points:
        raise InputError(f"y has {len(y)} labels: X has {n_points} points, one label each is needed")
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise InputError("y holds NaN or infinity: every point needs a label")
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise InputError("y holds NaT: every point needs a label")
    if y.dtype.kind == "O" and any(_is_missing(label) for label in y):
        raise InputError("y holds None, NaN or NA: every point needs a label")
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as err:
        raise InputError(f"y mixes types that cannot be compared ({err}): use labels of one type") from None
    if len(classes) < 2:
        raise InputError(f"y has one class only ({classes.tolist()[0]!r}): at least two classes are needed")
    return codes.astype(np.int64), classes


def _is_missing(label):
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA does not answer
        return True


def as_count(value, name, *, none=None):
    """Return a whole number of at least 1; None is allowed where ``none`` says what it means."""
    if value is None and none is not None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        extra = f", or None for {none}" if none else ""
        raise InputError(f"{name}={shortened(value)}: {name} must be a whole number of at least 1{extra}")
    return int(value)


def as_positive(value, name, *, none=None):
    """Return a finite float > 0; None is allowed where ``none`` says what it means."""
    if value is None and none is not None:
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value <= 0:
        extra = f", or None for {none}" if none else ""
        raise InputError(f"{name}={shortened(value)}: {name} must be a positive number{extra}")
    return float(value)


def as_flag(value, name):
    """Return True or False, numpy's included; 1, "yes" and the like are refused."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={shortened(value)}: {name} must be True or False")
    return bool(value)


def as_choice(value, name, choices):
    """Return value if it is one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name}={shortened(value)}: {name} must be one of {', '.join(map(repr, choices))}")
    return value


def as_weights(weights, n, name="weights"):
    """Return n positive finite float64 weights, or None."""
    if weights is None:
        return None
    w = as_numbers(weights, name).copy()
    if w.shape != (n,):
        raise InputError(f"{name} has shape {w.shape}: one weight for each of the {n} triplets is needed")
    bad = ~(np.isfinite(w) & (w > 0))
    if bad.any():
        t = int(np.argmax(bad))
        raise InputError(f"{name}[{t}] is {w[t]}: weights must be positive and finite")
    return w


def as_alpha(alpha, n):
    """Return n dual variables in [0, 1]."""
    a = np.ascontiguousarray(as_numbers(alpha, "alpha"))
    if a.shape != (n,):
        raise InputError(f"alpha has shape {a.shape}: one value for each of the {n} triplets is needed")
    bad = ~((a >= 0) & (a <= 1))
    if bad.any():
        t = int(np.argmax(bad))
        raise InputError(f"alpha[{t}] is {a[t]}: every alpha must lie between 0 and 1")
    return a
