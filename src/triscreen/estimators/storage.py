"""Solutions, estimators, and pipelines of these, as plain numbers, texts and arrays, and back."""

from __future__ import annotations

import warnings
from dataclasses import asdict, fields

import numpy as np
import sklearn
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from triscreen.errors import InputError
from triscreen.estimators import ComparisonMetric, Scaling, TripletClassifier, TripletMetric, TripletMetricCV
from triscreen.estimators.foreign import STEPS, attributes_of, finish
from triscreen.estimators.preprocessing import savable
from triscreen.path import Path
from triscreen.screening import Screening
from triscreen.solvers import Solution

_OURS = (TripletMetric, TripletMetricCV, TripletClassifier, ComparisonMetric, Scaling)
CLASSES = {**{cls.__name__: cls for cls in _OURS}, **STEPS}
_NOTHING = "passthrough"  # a step of a pipeline that does nothing
_OBJECTS = ("feature_names_in_", "classes_", "fit labels_")  # lists in a file, arrays of objects outside
_NUMBERS = (bool, int, float, str, type(None))
# What may be code: the loaded estimator has the default instead.
_CODE = ("cv", "scoring", "solver", "random_state")
# What belongs to one run.
_RUN = ("callback", "checkpoint", "scheduler")
_OUTPUT = "_sklearn_output_config"  # what set_output sets
# Methods whose metadata can be requested, and what a sparse matrix is made of.
_METHODS = ("fit", "transform", "score", "predict", "decision_function")
_CSR = ("data", "indices", "indptr")
_HISTORY = "history "
# What stands for an array within a value, what begins its name in the file, and what stands for a tuple.
_ARRAY, _PART, _TUPLE = "array", "part of ", "tuple"
_RENAMED = {"M": "solution M"}  # in the file of an estimator


def to_arrays(estimator):
    """Return (numbers and texts, arrays) of an estimator, fitted or not; what is code is left out."""
    meta, arrays = {"class": type(estimator).__name__, "parameters": {}, "attributes": {}}, {}
    meta["output"] = dict(getattr(estimator, _OUTPUT, {}))
    meta["requests"] = _requests(estimator)
    parameters = estimator.get_params(deep=False)
    left = [name for name in _CODE if not isinstance(parameters.get(name), _NUMBERS)]
    if parameters.get("preprocessor") is not None:
        parameters["preprocessor"] = savable(parameters["preprocessor"])
        left += ["preprocessor"] * (parameters["preprocessor"] is None)
    parameters = {name: value for name, value in parameters.items() if name not in (*left, *_RUN)}
    if left:
        warnings.warn(
            f"{', '.join(left)}: not saved, because it is not numbers alone; what is loaded has the default there",
            UserWarning,
            stacklevel=4,
        )
    for kind, values in (("parameters", parameters), ("attributes", attributes_of(estimator, _fitted(estimator)))):
        for name, value in values.items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiubUmM":
                arrays[f"{kind} {name}"] = value
            elif sparse.issparse(value):
                _take_apart(value, name, meta, arrays)
            elif isinstance(value, Path):
                numbers, parts = value.to_arrays()
                meta["path"] = {"name": name, **numbers}
                arrays.update({f"path {part}": array for part, array in parts.items()})
            elif isinstance(value, Solution):
                meta["solution"], parts = solution_to_arrays(value)
                arrays.update({_RENAMED.get(part, part): array for part, array in parts.items()})
            else:
                meta[kind][name] = _plain(_unfrozen(value, name), name, _Keep(arrays, f"{kind} {name}"))
    return meta, arrays


def from_arrays(meta, arrays):
    """Return the estimator that `to_arrays` took apart."""
    parameters = _with_arrays(meta["parameters"], arrays, "parameters ")
    for name, told in meta.get("sparse", {}).items():
        make = sparse.csr_array if told["is_array"] else sparse.csr_matrix
        parts = tuple(arrays[f"sparse {name} {part}"] for part in _CSR)
        parameters[name] = make(parts, shape=tuple(told["shape"]))
    made = CLASSES[meta["class"]](**parameters)
    if meta["output"]:
        made.set_output(**meta["output"])
    with sklearn.config_context(enable_metadata_routing=True):
        for method, wanted in meta.get("requests", {}).items():
            getattr(made, f"set_{method}_request")(**wanted)
    attributes = _with_arrays(meta["attributes"], arrays, "attributes ")
    for name in _OBJECTS:
        if isinstance(attributes.get(name), list):
            attributes[name] = np.array(attributes[name], dtype=object)
    finish(made, attributes)
    if "solution" in meta:
        parts = {"M": arrays["solution M"], **{name: a for name, a in arrays.items() if name.startswith(_HISTORY)}}
        made.solution_ = solution_from_arrays(meta["solution"], parts)
    if "path" in meta:
        parts = {name[len("path ") :]: array for name, array in arrays.items() if name.startswith("path ")}
        setattr(made, meta["path"]["name"], Path.from_arrays(meta["path"], parts))
    return made


def pipeline_to_arrays(pipeline):
    """Return (numbers and texts, arrays) of a pipeline of our estimators and those of scikit-learn that are known."""
    meta, arrays = {"steps": [], "verbose": bool(pipeline.verbose)}, {}
    if getattr(pipeline, "transform_input", None) is not None:
        meta["transform_input"] = _plain(pipeline.transform_input, "transform_input")
    for number, (name, step) in enumerate(pipeline.steps):
        if step is None or (isinstance(step, str) and step == _NOTHING):
            meta["steps"].append({"name": name, "class": _NOTHING})
            continue
        if CLASSES.get(type(step).__name__) is not type(step):
            raise InputError(
                f"the step {name!r} of the pipeline is a {type(step).__name__}: a pipeline that is saved may have "
                f"{', '.join(CLASSES)} and {_NOTHING!r} only"
            )
        own, parts = to_arrays(step)
        meta["steps"].append({"name": name, **own})
        arrays.update({f"step {number} {part}": array for part, array in parts.items()})
    return meta, arrays


def pipeline_from_arrays(meta, arrays):
    """Return the pipeline that `pipeline_to_arrays` took apart."""
    steps = []
    for number, step in enumerate(meta["steps"]):
        begin = f"step {number} "
        parts = {name[len(begin) :]: array for name, array in arrays.items() if name.startswith(begin)}
        steps.append((step["name"], _NOTHING if step["class"] == _NOTHING else from_arrays(step, parts)))
    return Pipeline(steps, **{name: meta[name] for name in ("verbose", "transform_input") if name in meta})


def solution_to_arrays(solution):
    """Return (numbers and texts, arrays) of a solution."""
    numbers = {item.name: getattr(solution, item.name) for item in fields(solution)}
    meta = {name: _plain(value, name) for name, value in numbers.items() if name not in ("M", "history")}
    return meta, {"M": solution.M, **{_HISTORY + part: array for part, array in solution.history.items()}}


def solution_from_arrays(meta, arrays):
    """Return the solution that `solution_to_arrays` took apart."""
    history = {name[len(_HISTORY) :]: array for name, array in arrays.items() if name.startswith(_HISTORY)}
    return Solution(**meta, M=arrays["M"], history=history)


def _fitted(estimator):
    return {name: value for name, value in vars(estimator).items() if name.endswith("_") and not name.startswith("_")}


def _requests(estimator):
    """Return what `set_fit_request` and its kind have set: {method: {name: request}}."""
    routing = estimator.get_metadata_routing()
    found = {}
    for method in _METHODS:
        if hasattr(estimator, f"set_{method}_request"):
            wanted = getattr(routing, method).requests
            found[method] = {name: request for name, request in wanted.items() if request is not None}
    return {method: wanted for method, wanted in found.items() if wanted}


def _take_apart(matrix, name, meta, arrays):
    """Keep a sparse matrix as the arrays of its rows (CSR)."""
    matrix = matrix.tocsr()
    meta.setdefault("sparse", {})[name] = {"shape": list(matrix.shape), "is_array": not sparse.isspmatrix(matrix)}
    arrays.update({f"sparse {name} {part}": getattr(matrix, part) for part in _CSR})


def _with_arrays(values, arrays, prefix):
    found = {name: _whole(value, arrays) for name, value in values.items()}
    return {**found, **{name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}}


class _Keep:
    """Keeps arrays that are parts of a value, and returns what stands for one in its place."""

    def __init__(self, arrays, name):
        self.arrays, self.name, self.n = arrays, name, 0

    def __call__(self, array):
        key = f"{_PART}{self.name} {self.n}"
        self.arrays[key], self.n = array, self.n + 1
        return {_ARRAY: key}


def _unfrozen(value, name):
    """Return a value in which metrics that are frozen have become their matrices."""
    if isinstance(value, list | tuple):
        return type(value)(_unfrozen(item, name) for item in value) if name == "candidates" else value
    if type(value).__name__ != "FrozenEstimator" or not hasattr(value.estimator, "get_mahalanobis_matrix"):
        return value
    try:
        return value.estimator.get_mahalanobis_matrix()
    except NotFittedError:
        raise InputError(f"{name} is a {type(value.estimator).__name__} that is not fitted: fit it first") from None


def _whole(value, arrays):
    """Return what `_plain` took apart."""
    if isinstance(value, list):
        return [_whole(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Screening"}:
        return Screening(**value["Screening"])
    if value.keys() == {_ARRAY}:
        return arrays[value[_ARRAY]]
    if value.keys() == {_TUPLE}:
        return tuple(_whole(item, arrays) for item in value[_TUPLE])
    return {key: _whole(item, arrays) for key, item in value.items()}


def _plain(value, name, keep=None):
    """Return a value as numbers, texts, lists and dictionaries; keep: takes the arrays in it."""
    if isinstance(value, Screening) and not any(map(callable, (*value.bounds, value.rule))):
        return {"Screening": {**asdict(value), "bounds": list(value.bounds)}}
    if isinstance(value, np.generic):
        return value.item()
    texts = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "OU"  # names, labels
    if texts and all(isinstance(item, _NUMBERS) for item in value):
        return [str(item) if isinstance(item, str) else item for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and keep is not None:
        return keep(value)
    if isinstance(value, list):
        return [_plain(item, name, keep) for item in value]
    if isinstance(value, tuple):
        items = [_plain(item, name, keep) for item in value]
        return items if keep is None else {_TUPLE: items}
    if isinstance(value, dict):
        return {key: _plain(item, name, keep) for key, item in value.items()}
    if isinstance(value, _NUMBERS):
        return value
    raise InputError(f"{name} is a {type(value).__name__}: what is saved must be numbers, texts and arrays")
