"""What is told of a path beside its metrics: `triscreen.report.gather` collects it, reports and figures show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np


@dataclass(frozen=True, eq=False)
class Facts(Mapping):
    """The facts of a path; None where there is none.

    They are a mapping, too: ``facts["errors"]``, ``"errors" in facts``, without those that are None.

    Attributes
    ----------
    source : str
        What the data are called.
    n_points, n_pairs : int
    feature_names, classes : list of str
    k : int
        Neighbours of the held-out error.
    left_out : list of str
        What there was no time for, in words.
    n_test : int
        Held-out points, or comparisons.
    error_of : {"neighbours", "comparisons"}
    error_before : float
        Of Euclidean distance.
    feature_spread : array, shape (n_features,)
        Standard deviations.
    sample_classes : array, shape (n_shown,)
        Classes (their places in ``classes``) of the points that are shown.
    frames : array of int
        Numbers of the lambdas that are shown.
    errors : array, shape (n_frames,)
    band_lambdas, band_lower, band_upper : arrays, shapes (m + 1,), (m,), (m,)
        Falling lambdas, and what the error of the optimal metric is at least and at most for every lambda between one
        and the next (`triscreen.validation_bounds`).
    influence_of, influence_names, influence_shares : {"points", "comparisons"}, list of str, array
        Of those without which the metric moves by at most its own size, the ones that could move it most, at most by
        such a share (`Path.influence`).
    influence_half, influence_open : float, int
        At most by this share it moves without any one of half of them; and how many are not bounded by its size.
    coloured : array of int
        With many classes, the few that have a colour of their own.
    suspects : list of list
        Names of columns, then rows: the points or comparisons that cost most at the lambda that is shown first.
    neighbours : list of list
        Some held-out points: name, label, nearest points (name and label) before and after.
    confusion : list of list
        Label, what it is taken for, how many held-out points.
    changed : list of int
        Held-out points that learning mends, and spoils.
    command, file : str
        What made the path, and where it was saved, where that is known.
    before, after : arrays, shapes (n_shown, 2) and (n_frames, n_shown, 2)
        The points in the plane in which their classes lie farthest apart, without the metric and with it.
    alike_before, alike : arrays, shapes (6,) and (n_frames, 6)
        How many points have none, one, ... five of their own class among their five nearest, without the metric and
        with it.
    alike_of : {"held-out", "learned"}
        Whose neighbours these are: of held-out points where there are some, else of some of those learned from.
    stops : array of int
        Numbers of the lambdas at which the problem was solved again.
    rates : dict of str to list
        What each sphere and rule proves at the stops.
    dynamic_iterations, dynamic : arrays, shapes (n,) and (n_stops, n)
        What is decided after so many iterations; NaN after the end.
    ranges : array, shape (n_stops, n_frames)
        What the solution at a stop decides at the lambdas shown.
    prior : str
        What the metric is called that the path begins at and is regularised towards, where there is one.
    scale, shift, factor : str, array, array
        How ``triscreen path`` scaled the points: the path is about (x - shift) * factor.
    columns : dict
        What ``triscreen path`` learned of the columns of a file that its features are made of.
    """

    source: str = ""
    n_points: int | None = None
    n_pairs: int | None = None
    feature_names: list | None = None
    classes: list | None = None
    k: int | None = None
    left_out: list = field(default_factory=list)
    n_test: int | None = None
    error_of: str | None = None
    error_before: float | None = None
    feature_spread: np.ndarray | None = None
    sample_classes: np.ndarray | None = None
    frames: np.ndarray | None = None
    errors: np.ndarray | None = None
    band_lambdas: np.ndarray | None = None
    band_lower: np.ndarray | None = None
    band_upper: np.ndarray | None = None
    influence_of: str | None = None
    influence_names: list | None = None
    influence_shares: np.ndarray | None = None
    influence_half: float | None = None
    influence_open: int | None = None
    suspects: list | None = None
    neighbours: list | None = None
    confusion: list | None = None
    changed: list | None = None
    command: str | None = None
    file: str | None = None
    coloured: np.ndarray | None = None
    alike_of: str | None = None
    alike_before: np.ndarray | None = None
    alike: np.ndarray | None = None
    before: np.ndarray | None = None
    after: np.ndarray | None = None
    stops: np.ndarray | None = None
    rates: dict | None = None
    dynamic_iterations: np.ndarray | None = None
    dynamic: np.ndarray | None = None
    ranges: np.ndarray | None = None
    prior: str | None = None
    scale: str | None = None
    shift: np.ndarray | None = None
    factor: np.ndarray | None = None
    columns: dict | None = None

    def __getitem__(self, name):
        value = getattr(self, name) if name in _NAMES else None
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self):
        return (name for name in _NAMES if getattr(self, name) is not None)

    def __len__(self):
        return sum(1 for _ in self)

    def to_arrays(self):
        """Return (numbers and texts, arrays)."""
        arrays = {name: value for name, value in self.items() if isinstance(value, np.ndarray)}
        return {name: value for name, value in self.items() if name not in arrays}, arrays

    @classmethod
    def from_arrays(cls, meta, arrays):
        """Make them from what `to_arrays` gave; names that are not known here are left out."""
        return cls(**{name: value for name, value in {**meta, **arrays}.items() if name in _NAMES})


_NAMES = tuple(item.name for item in fields(Facts))
