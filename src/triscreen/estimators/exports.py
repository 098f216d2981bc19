"""Models for elsewhere: what ``transform`` does, scaling included, as a file that others read.

Each is the affine map z = (x - shift) @ matrix + offset of `triscreen.estimators.affine`. faiss and
sentence-transformers have no shift, only a bias = offset - shift @ matrix, which is summed in float64 and kept in
float32: where points lie far from zero compared with their spread, digits are lost there.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path as File

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from triscreen._utils.archive import replacing
from triscreen._utils.extras import wanted
from triscreen._utils.validation import as_choice
from triscreen.errors import InputError
from triscreen.estimators.affine import affine, steps_of, told_of_features
from triscreen.estimators.onnx import to_onnx

FORMATS = ("onnx", "npz", "safetensors", "faiss", "sentence-transformers")
_ENDINGS = {".onnx": "onnx", ".npz": "npz", ".safetensors": "safetensors", ".faiss": "faiss"}
_NAMES = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64"}  # safetensors' own
_FORMULA = "z = (x - shift) @ matrix + offset"
_FILES = {"config.json", "model.safetensors"}  # of a Dense module
_MADE = ("category", "boolean", "date")  # columns that are no numbers yet


def export(
    model: BaseEstimator, file: str | os.PathLike[str], to: str | None = None, dtype: DTypeLike | None = None
) -> None:
    """Write what ``model.transform`` does to a file that others read, scaling included; whole or not at all.

    Parameters
    ----------
    model : estimator or Pipeline
        As for `triscreen.estimators.onnx.to_onnx`: a fitted metric or classifier, perhaps after scalers.
    file : path
        Where to; a folder for "sentence-transformers".
    to : {"onnx", "npz", "safetensors", "faiss", "sentence-transformers"}, optional
        By default what the name of the file ends with. "npz" and "safetensors" hold shift, matrix and offset, with
        z = (x - shift) @ matrix + offset. "faiss" is an empty IndexPreTransform: add and search points as they are, and
        its distances are the learned ones, squared. "sentence-transformers" is the folder of a Dense module, to stand
        last among the modules of a model. The names of the features, in their order, and what is known of the columns
        that they are made of (categories, medians; JSON) go along in "npz" (arrays "features" and "columns"),
        "safetensors" and "onnx" (metadata of these names); the other two have no place for them.
    dtype : numpy.float32 or numpy.float64, optional
        Of the numbers; by default float64 for "npz" and float32 otherwise. faiss and sentence-transformers have
        float32 only.

    References
    ----------
    docs/estimators.md, "Elsewhere"; ours.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import triscreen as ts
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(ts.Scaling(), ts.TripletMetric()).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "iris.npz")
    ...     ts.export(model, file)
    ...     with np.load(file) as arrays:
    ...         Z = (X - arrays["shift"]) @ arrays["matrix"] + arrays["offset"]
    >>> bool(np.allclose(Z, model.transform(X)))
    True
    """
    to = check_format(file, to)
    single = to in ("faiss", "sentence-transformers")
    kind = np.dtype(dtype if dtype is not None else np.float64 if to == "npz" else np.float32)
    if kind not in _NAMES or (single and kind != np.float32):
        raise InputError(f"dtype={dtype!r}: dtype must be float32{'' if single else ' or float64'} for to={to!r}")
    if to == "onnx":
        made = to_onnx(model, kind).SerializeToString()  # it tells of features itself
    elif to == "faiss":
        made = _index(*_linear(model))
    elif to == "sentence-transformers":
        return _write_dense(File(file), *_linear(model))
    else:
        arrays = dict(zip(("shift", "matrix", "offset"), affine(model), strict=True))
        arrays = {name: np.ascontiguousarray(array, dtype=kind) for name, array in arrays.items()}
        if to == "npz":
            told = told_of_features(model)
            told = {**told, **({"features": np.array(json.loads(told["features"]))} if "features" in told else {})}
            with replacing(file) as stream:
                np.savez(stream, **arrays, **told)
            return None
        made = as_safetensors(arrays, {"formula": _FORMULA, "producer": "triscreen", **told_of_features(model)})
    with replacing(file) as stream:
        stream.write(made)
    return None


def prepared(model):
    """Return (title, kind) of the columns that are no numbers yet, or whose gaps are filled in, before that."""
    columns = (getattr(steps_of(model)[0][1], "columns_", None) or {}).get("columns", ())
    return [
        (column["title"], column["kind"]) for column in columns if column["kind"] in _MADE or column["fill"] is not None
    ]


def check_format(file, to):
    """Return the format: the one named, or what the name of a file ends with."""
    if to is None:
        to = _ENDINGS.get(File(os.fspath(file)).suffix)
        if to is None:
            raise InputError(
                f"to=None: the name {os.fspath(file)!r} does not end with {', '.join(_ENDINGS)}, so say which of "
                f"{', '.join(FORMATS)} it shall be"
            )
    return as_choice(to, "to", FORMATS)


def as_safetensors(arrays, metadata):
    """Return arrays as the bytes of a safetensors file: the length of a JSON header, that header, and the numbers."""
    header, begin = {"__metadata__": metadata}, 0
    for name, array in arrays.items():
        end = begin + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # numbers begin at a multiple of 8
    little = (array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays.values())
    return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in little)])


def _linear(model):
    """Return (weight, bias) with transform(x) = weight @ x + bias, in float32; summed in float64."""
    shift, matrix, offset = affine(model)
    return np.ascontiguousarray(matrix.T, dtype=np.float32), (offset - shift @ matrix).astype(np.float32)


def _index(weight, bias):
    """Return a faiss index that maps what is added and asked for, as bytes."""
    faiss = wanted("faiss", "indices", "faiss")
    map_ = faiss.LinearTransform(weight.shape[1], weight.shape[0], True)
    faiss.copy_array_to_vector(weight.ravel(), map_.A)
    faiss.copy_array_to_vector(bias, map_.b)
    map_.is_trained = True
    map_.set_is_orthonormal()
    index = faiss.IndexPreTransform(map_, faiss.IndexFlatL2(weight.shape[0]))
    return faiss.serialize_index(index).tobytes()


def _write_dense(folder, weight, bias):
    """Write the folder of a Dense module of sentence-transformers; one that is there is replaced if it is another."""
    if folder.exists() and not (folder.is_dir() and {file.name for file in folder.iterdir()} <= _FILES):
        raise InputError(f"file={str(folder)!r} is there and no Dense module: a folder that is not there yet is needed")
    settings = {"in_features": weight.shape[1], "out_features": weight.shape[0], "bias": True,
                "activation_function": "torch.nn.modules.linear.Identity"}  # fmt: skip
    made, old = (File(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent)) for _ in range(2))
    try:
        numbers = as_safetensors({"linear.weight": weight, "linear.bias": bias}, {"format": "pt"})
        (made / "model.safetensors").write_bytes(numbers)
        (made / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        made.chmod(0o755)
        if folder.is_dir():
            os.rename(folder, old)  # such a module, too: it goes when the new one is there
        os.rename(made, folder)
    finally:
        for left in (made, old):
            shutil.rmtree(left, ignore_errors=True)
