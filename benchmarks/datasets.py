"""The data of the paper, prepared as there, and synthetic data of any size.

Each set comes from a folder (an argument, or the environment variable TRISCREEN_DATA): `name.npz` with X and y (or the
parts of a CSR matrix), or LIBSVM's own text file under its LIBSVM name; iris, wine, digits and cancer from
scikit-learn. With ``fetch=True`` what is missing is asked of LIBSVM's site or of OpenML, and kept where scikit-learn
keeps its data. Where the paper reduced the dimension by an autoencoder, PCA does it here. Three sets of the paper could
not be had; stand-ins of a similar size say so.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlretrieve

import numpy as np
from scipy import sparse
from sklearn import datasets as sklearn_datasets


class Missing(LookupError):
    """What a cell needs is not there: a data set, or a peer (``key`` says which of its parameters)."""

    def __init__(self, message, key="data"):
        super().__init__(message)
        self.key = key


def scaled(X):
    """Scale each feature to [-1, 1]; constant ones to 0 (LIBSVM's scaling)."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(high > low, 2 * (X - low) / np.where(high > low, high - low, 1) - 1, 0.0)


def standardised(X):
    """Mean 0 and variance 1 per sample, then per feature (colon-cancer)."""
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def reduced(dimensions, scale=1.0):
    """Return a preparation: scores on the first principal axes."""

    def prepare(X):
        from sklearn.decomposition import PCA

        return PCA(dimensions, svd_solver="covariance_eigh").fit_transform(X * scale)

    return prepare


def text(X):
    """200 dimensions of a sparse matrix by truncated SVD."""
    from sklearn.decomposition import TruncatedSVD

    return TruncatedSVD(200, random_state=0).fit_transform(X)


@dataclass(frozen=True)
class Paper:
    """What the paper's tables say of a set; lambda_min is the mean over its subsamples."""

    d: int
    n: int
    classes: int
    triplets: int
    lambda_max: float
    lambda_min: float


@dataclass(frozen=True)
class Data:
    """One row of the table.

    Attributes
    ----------
    k : int or None
        Neighbours of the same and of other classes; None: all triplets.
    paper : Paper or None
    prepare : callable
        What is done to X.
    file : str or None
        Stem of the file; None: from scikit-learn.
    points : int or None
        So many points, drawn at random (always the same ones), instead of all.
    same : bool
        The paper's lambda_max is that of these very data; otherwise paths start at our own.
    stands_for : str or None
        The set of the paper that could not be had.
    openml : str or None
        Its name there, for those that LIBSVM's site does not have.
    """

    k: int | None
    paper: Paper | None = None
    prepare: object = None
    file: str | None = None
    cone: str = "psd"
    points: int | None = None
    same: bool = False
    stands_for: str | None = None
    openml: str | None = None


DATA = {
    "iris": Data(None, Paper(4, 150, 3, 546668, 1.3e7, 2.3e1), scaled, same=True),
    "wine": Data(None, Paper(13, 178, 3, 910224, 2.0e7, 5.1e1), scaled, same=True),
    "segment": Data(20, Paper(19, 2310, 7, 832000, 2.5e6, 4.2), scaled, "segment", same=True),
    "satimage": Data(15, Paper(36, 4435, 6, 898200, 1.0e7, 8.8), scaled, "satimage", same=True),
    "phishing": Data(7, Paper(68, 11055, 2, 487550, 5.0e3, 0.2), None, "phishing", same=True),
    "covtype": Data(
        3, Paper(100, 78823, 3, 638469, 1.0e4, 2.9), scaled, "covtype", points=78823, stands_for="SensIT Vehicle",
        openml="covertype",
    ),
    "a9a": Data(5, Paper(16, 32561, 2, 732625, 1.2e5, 3.1e2), reduced(16), "a9a"),
    "mnist": Data(5, Paper(32, 60000, 10, 1350025, 7.0e3, 0.96), reduced(32, 1 / 255), "mnist"),
    "cifar10": Data(2, Paper(200, 50000, 10, 180004, 2.0e3, 3.3e1), None, "cifar10-pca200"),
    "20newsgroups": Data(
        3, Paper(200, 15564, 53, 126018, 3.0e2, 6.0e-4), text, "20newsgroups-tfidf", stands_for="rcv1.multiclass"
    ),
    "usps": Data(10, Paper(256, 7291, 10, 656200, 1.0e7, 1.9e3), None, "usps", "diagonal"),
    "madelon": Data(20, Paper(500, 2000, 2, 720400, 2.0e14, 4.7e11), None, "madelon", "diagonal"),
    "colon-cancer": Data(None, Paper(2000, 62, 2, 38696, 5.0e7, 7.0e3), standardised, "colon-cancer", "diagonal"),
    "basehock": Data(
        15, Paper(5000, 6000, 2, 1215225, 4.5e8, 2.1e3), None, "basehock", "diagonal", stands_for="gisette"
    ),
    "digits": Data(10, prepare=lambda X: X / 16),
    "cancer": Data(10, prepare=scaled),
}  # fmt: skip
# Where LIBSVM's site has them; its files in the folder of data are found by these names, too, unpacked or not.
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_LIBSVM = {
    "segment": "multiclass/segment.scale",
    "satimage": "multiclass/satimage.scale",
    "phishing": "binary/phishing",
    "a9a": "binary/a9a",
    "mnist": "multiclass/mnist.bz2",
    "usps": "multiclass/usps.bz2",
    "madelon": "binary/madelon",
    "colon-cancer": "binary/colon-cancer.bz2",
}
_EMBEDDED = {"iris": "load_iris", "wine": "load_wine", "digits": "load_digits", "cancer": "load_breast_cancer"}


def raw(name, folder=None, fetch=False):
    """Return (X, y) as stored: X may be sparse; raise `Missing` if it is not there."""
    if name not in DATA:
        raise ValueError(f"data={name!r}: data must be one of {', '.join(DATA)}")
    if name in _EMBEDDED:
        return getattr(sklearn_datasets, _EMBEDDED[name])(return_X_y=True)
    folder = folder or os.environ.get("TRISCREEN_DATA")
    if folder:
        file = Path(folder) / f"{DATA[name].file}.npz"
        if file.exists():
            return _from_npz(file)
        stem = Path(_LIBSVM.get(name, name)).name.removesuffix(".bz2")
        for ending in ("", ".txt", ".bz2"):
            file = Path(folder) / (stem + ending)
            if file.is_file():
                return sklearn_datasets.load_svmlight_file(str(file))
    if fetch and (name in _LIBSVM or DATA[name].openml):
        try:
            return _from_libsvm(name) if name in _LIBSVM else _from_openml(name)
        except (OSError, ValueError) as error:
            raise Missing(f"{name} could not be fetched ({error})") from None
    where = (
        f"{folder} has no {DATA[name].file}.npz" if folder else "no folder is given: --data FOLDER or TRISCREEN_DATA"
    )
    raise Missing(f"{name} not found ({where})")


def _from_libsvm(name):
    file = Path(sklearn_datasets.get_data_home()) / "libsvm" / Path(_LIBSVM[name]).name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name}.part")
        urlretrieve(f"{LIBSVM}/{_LIBSVM[name]}", part)
        part.replace(file)
    return sklearn_datasets.load_svmlight_file(str(file))


def _from_openml(name):
    found = sklearn_datasets.fetch_openml(DATA[name].openml, version=1, as_frame=False)
    return found.data, found.target


def _from_npz(file):
    with np.load(file) as data:
        if "indptr" in data:
            return sparse.csr_matrix((data["data"], data["indices"], data["indptr"]), shape=data["shape"]), data["y"]
        return data["X"], data["y"]


def load(name, folder=None, fetch=False, points=None):
    """Return (X, y) prepared as in the paper: dense float64; points: so many, drawn at random, always the same."""
    X, y = raw(name, folder, fetch)
    points = points or DATA[name].points
    if points and points < len(y):
        rows = np.sort(np.random.default_rng(0).permutation(len(y))[:points])
        X, y = X[rows], y[rows]
    prepare = DATA[name].prepare
    if sparse.issparse(X) and prepare is not text:
        X = X.toarray()
    X = X.astype(np.float64)
    return (X if prepare is None else prepare(X)), np.unique(y, return_inverse=True)[1]


def table(name, folder=None):
    """Return (X, y, fold) of a set of the published comparison: raw, and the fold in which a row is tested."""
    with np.load(_in_tables(f"{name}.npz", folder, "table")) as data:
        return data["X"].astype(np.float64), data["y"], data["fold"]


def published(name, folder=None):
    """Return {method: its published accuracy on a set; None: it failed}."""
    with open(_in_tables("published.csv", folder, "kind"), newline="") as file:
        rows = {row.pop(""): row for row in csv.DictReader(file)}
    if name not in rows:
        raise Missing(f"{name} is not in published.csv", "table")
    return {method: float(text) if text else None for method, text in rows[name].items()}


def _in_tables(file, folder, key):
    """Return a file of the folder tables; key: which of a cell's parameters is in vain without it."""
    folder = folder or os.environ.get("TRISCREEN_DATA")
    if not folder:
        raise Missing("tables not found (no folder is given: --data FOLDER or TRISCREEN_DATA)", "kind")
    tables = Path(folder) / "tables"
    if not tables.is_dir():
        raise Missing(f"tables not found ({folder} has no folder of this name)", "kind")
    if not (tables / file).exists():
        raise Missing(f"{file} not found in {tables}", key)
    return tables / file


def subsample(X, y, share=0.9, seed=0):
    """A random share of the points, in their order."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(X))[: int(share * len(X))])
    return X[rows], y[rows]


def lambdas(name, top, ratio=0.9, length=None, own_start=False):
    """Return the list of lambdas: from the paper's lambda_max (or ``top``, our own) down as far as the paper went."""
    data = DATA[name]
    paper = data.paper
    count = 1 + int(np.log(paper.lambda_max / paper.lambda_min) / np.log(1 / ratio))
    first = paper.lambda_max if data.same and not own_start else top
    return first * ratio ** np.arange(min(count, length or count))


def synthetic(n, d, classes=5, seed=0):
    """Overlapping Gaussian classes with some structure in every direction."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) + 2.0 * rng.normal(size=(classes, d))[y] / np.sqrt(d) * 2, y
