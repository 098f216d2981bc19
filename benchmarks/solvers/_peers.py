"""Peers of the accuracy benchmark: fit another library's metric on training points and print its linear map.

    python _peers.py PEER data.npz

data.npz holds X_train, y_train (integers) and X_test. One line of JSON is printed: the peer, the seconds of its fit, of
the clock and of the processor, and its components L (r x d), for which z = x L'; the caller computes the test error
from L, the same way for all peers. All take 3 target neighbours and otherwise their own defaults ("mlpack-lbfgs"
another optimiser: the default one stops short). triscreen is not needed: each peer may have a virtual environment of
its own, with the packages it still works with (and the Pythons that were tried):

    euclid, nca     pip install scikit-learn==1.9.1  (3.12)
    mlpack          pip install mlpack==4.8.0  (3.11, 3.12)
    metric-learn    pip install metric-learn==0.7.0 "scikit-learn<1.8"  (3.11, 3.12)
    pylmnn          pip install PyLMNN==1.6.4 GPyOpt==1.2.6 six matplotlib "numpy<1.24" "scipy<1.11" "scikit-learn<1.3"
                    (3.9; GPyOpt, six and matplotlib only because importing it needs them)
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

import numpy as np

NEIGHBORS = 3


def euclid():
    return lambda X, y: np.eye(X.shape[1])


def nca():
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return lambda X, y: NeighborhoodComponentsAnalysis(random_state=0).fit(X, y).components_


def mlpack():
    from mlpack import lmnn

    # What it returns is transposed: its transformed_data is X @ output.
    return lambda X, y: lmnn(X, labels=y, k=NEIGHBORS)["output"].T


def mlpack_lbfgs():
    from mlpack import lmnn

    return lambda X, y: lmnn(X, labels=y, k=NEIGHBORS, optimizer="lbfgs")["output"].T


def metric_learn():
    from metric_learn import LMNN

    return lambda X, y: LMNN(n_neighbors=NEIGHBORS, random_state=0).fit(X, y).components_


def pylmnn():
    from pylmnn import LargeMarginNearestNeighbor

    return lambda X, y: LargeMarginNearestNeighbor(n_neighbors=NEIGHBORS, random_state=0).fit(X, y).components_


# Each imports its library and returns the fit: (X, y) to components.
PEERS = {
    "euclid": euclid,
    "nca": nca,
    "mlpack": mlpack,
    "mlpack-lbfgs": mlpack_lbfgs,
    "metric-learn": metric_learn,
    "pylmnn": pylmnn,
}


def measure(peer, X, y):
    """Fit a peer and return what is printed; what it prints itself goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        fit = PEERS[peer]()
        begin, used = time.perf_counter(), time.process_time()
        components = fit(X, y)
        took = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - used}
    return {"peer": peer, **took, "components": np.asarray(components).tolist()}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in PEERS:
        sys.exit(f"usage: python _peers.py {{{','.join(PEERS)}}} data.npz")
    peer, file = sys.argv[1:]
    with np.load(file) as data:
        X, y = data["X_train"].astype(float), data["y_train"].astype(int)
    try:
        measured = measure(peer, X, y)
    except ImportError as error:
        sys.exit(f"{peer} is not usable here ({error}); the top of _peers.py says what to install")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
