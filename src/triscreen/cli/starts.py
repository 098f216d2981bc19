"""Metrics to begin with, as words of the command line: none, identity, within, or a file that holds a metric."""

from __future__ import annotations

import os

from triscreen.cli.common import from_file
from triscreen.errors import InputError

WORDS = ("none", "identity", "within")


def words_of(text, name, several=False, labelled=True):
    """Return the words of an option, None for one that is not given; refuse what is neither a word nor a file."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")] if several else [text]
    for word in words:
        if word not in WORDS and not os.path.exists(word):
            raise InputError(f"{name}={word!r}: it must be {', '.join(WORDS)}, or a file that is there")
        if word == "within" and not labelled:
            raise InputError(f"{name}='within': comparisons have no classes, take none, identity or a file")
    return words


def files_of(words, name):
    """Return (name, file) of the words that are files; words may be None."""
    return [(name, word) for word in words or () if word not in WORDS]


def read_start(word, name, scaling, feature_names, cone):
    """Return a start as estimators take it; a metric in a file becomes that of points scaled as here."""
    if word in WORDS:
        return None if word == "none" else word
    import numpy as np

    from triscreen.problem.cones import make_cone

    M, own = _content(word, name)
    M = np.diag(M) if M.ndim == 1 else M
    if len(M) != scaling.n_features_in_:
        raise InputError(f"{name}={word!r} is about {len(M)} features: the points have {scaling.n_features_in_}")
    if own is not None:
        order = _order(own, feature_names, word, name)
        with np.errstate(all="ignore"):
            stretch = own.factor_[order] / scaling.factor_
            M = M[np.ix_(order, order)] * np.outer(stretch, stretch)
    return _checked(M, make_cone(cone), word, name)


def _checked(M, cone, file, name):
    """Return a metric as an element of the cone (zero: None), or refuse what is none, by the name of its file."""
    from triscreen.problem.prior import check_metric

    try:
        return check_metric(M, cone, len(M))
    except InputError as err:
        raise InputError(f"{name}={file!r}: its metric {str(err).removeprefix('prior').strip()}") from None


def _content(file, name):
    """Return (the metric in a file, the scaling that belongs to it or None)."""
    import numpy as np

    import triscreen as ts

    with from_file(file, name):
        found = ts.load(file)
        if isinstance(found, ts.Path):
            raise InputError(f"{name}={file!r} holds a path, a metric for every lambda: save one of them, path.M(t)")
        steps = [step for _, step in found.steps] if hasattr(found, "steps") else [found]
        last = steps[-1]
        if isinstance(last, np.ndarray | ts.Solution):
            return (last if isinstance(last, np.ndarray) else last.M).astype(float), None
        if not hasattr(last, "components_"):
            raise InputError(f"{name}={file!r} holds no metric: a fitted model, a solution or a metric is needed")
        M, scaling = last.get_mahalanobis_matrix(), steps[0] if len(steps) > 1 else None
        if scaling is not None and not (len(steps) == 2 and isinstance(scaling, ts.Scaling)):
            raise InputError(f"{name}={file!r} holds other steps than a scaling and a metric")
        if scaling is not None and scaling.factor_.shape != (len(M),):
            raise ValueError("its parts do not fit together")
    return M, scaling


def _order(scaling, feature_names, file, name):
    """Return where in a model's features those of the points are, by name where both have names."""
    import numpy as np

    known = getattr(scaling, "feature_names_in_", None)
    if known is None or feature_names is None:
        return np.arange(scaling.n_features_in_)
    places = {feature: place for place, feature in enumerate(known)}
    missing = [feature for feature in feature_names if feature not in places]
    if missing:
        raise InputError(f"{name}={file!r} knows no feature {missing[0]!r}: it is about {', '.join(known):.60}")
    return np.array([places[feature] for feature in feature_names])
