"""3-nearest-neighbour test error and fit seconds of one metric learner on one split, on one thread.

70 % of the points to learn from (2,000 at most for satimage, usps and phishing, there to test, too), features
standardised by these (digits, usps and phishing, which is one-hot, as they are). "triscreen" is `TripletMetric()`,
"triscreen-cv" is `TripletMetricCV()`, both with their defaults; peers are those of solvers/_peers.py, each run by the
interpreter named for it. Every fit runs in a process of its own, for at most LIMIT seconds of the processor; the error
is computed here, the same way for all. Seconds of the processor are kept, too: on a busy machine they are the ones to
compare.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks import datasets

OURS = ("triscreen", "triscreen-cv")
LIMIT = 60
LARGE = ("satimage", "usps", "phishing")
AS_THEY_ARE = ("digits", "usps", "phishing")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_ROOT = Path(__file__).parents[2]


def split(context, name, seed):
    """Return X_train, X_test, y_train, y_test."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    X, y = datasets.load(name, context.folder, context.fetch)
    parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    if name in LARGE:
        parts[0], parts[2] = parts[0][:2000], parts[2][:2000]
    if name == "phishing":
        parts[1], parts[3] = parts[1][:2000], parts[3][:2000]
    if name not in AS_THEY_ARE:
        scaler = StandardScaler().fit(parts[0])
        parts[:2] = [scaler.transform(part) for part in parts[:2]]
    return parts


def measure(context, data, peer, seed):
    """Return the error and the seconds, or why there are none; refuse a peer that is not installed."""
    from sklearn.neighbors import KNeighborsClassifier

    parts = split(context, data, seed)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "data.npz")
        np.savez(file, X_train=parts[0], y_train=parts[2], X_test=parts[1])
        script = __file__ if peer in OURS else str(_ROOT / "benchmarks" / "solvers" / "_peers.py")
        interpreter = sys.executable if peer in OURS else context.interpreter(peer.removesuffix("-lbfgs"))
        try:
            out = subprocess.run(
                [interpreter, script, peer, file], capture_output=True, text=True, timeout=6 * LIMIT,
                env=_environment(peer), preexec_fn=_limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"cut": True, "why": f"over {6 * LIMIT} s"}
    if out.returncode == -signal.SIGXCPU:
        return {"cut": True, "why": f"over {LIMIT} s"}
    if "not usable here" in out.stderr:
        raise datasets.Missing(
            f"{peer} is not installed: --python {peer}=interpreter names a Python that has it", "peer"
        )
    if out.returncode:
        return {"cut": True, "why": (out.stderr.strip().splitlines() or ["no result"])[-1][:200]}
    got = json.loads(out.stdout)
    L = np.array(got["components"]).T
    near = KNeighborsClassifier(3).fit(parts[0] @ L, parts[2])
    return {"cut": False, "n": len(parts[0]), "d": parts[0].shape[1], "error": 1 - near.score(parts[1] @ L, parts[3]),
            "seconds": got["seconds"], "processor": got["processor"]}  # fmt: skip


def _limit():
    """Have the system end the process that calls this after LIMIT seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))


def _environment(peer):
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    if peer not in OURS:  # an interpreter of its own shall not see our packages
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | ONE_THREAD
    return os.environ | ONE_THREAD | {"PYTHONPATH": path}


def fit_ours(which, file):
    """Fit one of ours, in this process; print like _peers.py."""
    import triscreen as ts

    with np.load(file) as data:
        X, y = data["X_train"], data["y_train"]
    kind = ts.TripletMetric if which == "triscreen" else ts.TripletMetricCV
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind(n_jobs=1, **({} if which == "triscreen" else {"ratios": 2, "cv": 2})).fit(X[:200], y[:200])  # warm
        begin, used = time.perf_counter(), time.process_time()
        model = kind(n_jobs=1).fit(X, y)
    took = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - used}
    print(json.dumps({"peer": which, **took, "components": model.components_.tolist()}))


if __name__ == "__main__":
    fit_ours(*sys.argv[1:])
