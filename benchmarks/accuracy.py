"""3-nearest-neighbour test error and fit seconds, several splits, next to other metric learners.

    python benchmarks/accuracy.py [data ...] [--seeds 5] [--out accuracy.jsonl] [--python PEER=interpreter ...]

Data: digits, wine, cancer (from scikit-learn); segment, satimage, usps (from the folder TRISCREEN_DATA). 70 % of the
points to learn from (2,000 at most for satimage and usps), features standardised by these (digits and usps as they
are). "triscreen" is `TripletMetric()`, "triscreen-cv" is `TripletMetricCV()`, both with their defaults; peers are those
of _peers.py, each run by the interpreter named for it (this one by default; a peer that is not installed is left out).
Each fit runs in a process of its own, on one thread, for at most 300 seconds, and is one line of the output file: a run
that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from _data import load
from _peers import PEERS
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

DATA = ("wine", "cancer", "digits", "segment", "satimage", "usps")
OURS = ("triscreen", "triscreen-cv")
LIMIT = 300
HERE = Path(__file__).parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def split(name, seed):
    """Return X_train, X_test, y_train, y_test, or None if the data are not there."""
    embedded = {"wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
    found = embedded[name](return_X_y=True) if name in embedded else load(name)
    if found is None:
        return None
    X, y = found
    parts = train_test_split(X / (16 if name == "digits" else 1), y, test_size=0.3, stratify=y, random_state=seed)
    if name in ("satimage", "usps"):
        parts[0], parts[2] = parts[0][:2000], parts[2][:2000]
    if name not in ("digits", "usps"):
        scaler = StandardScaler().fit(parts[0])
        parts[:2] = [scaler.transform(part) for part in parts[:2]]
    return parts


def fit_ours(which, file):
    """Fit one of ours, in this process; print like _peers.py."""
    import time

    import triscreen as ts

    with np.load(file) as data:
        X, y = data["X_train"], data["y_train"]
    model = ts.TripletMetric(n_jobs=1) if which == "triscreen" else ts.TripletMetricCV(n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        type(model)(n_jobs=1, **({"ratios": 2, "cv": 2} if which == "triscreen-cv" else {})).fit(
            X[:200], y[:200]
        )  # warm
        begin = time.perf_counter()
        model.fit(X, y)
    print(json.dumps({"peer": which, "seconds": time.perf_counter() - begin, "components": model.components_.tolist(),
                      "rel_gap": model.rel_gap_}))  # fmt: skip


def measure(which, parts, interpreter):
    """Return one row of the results, or None where the peer is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "data.npz")
        np.savez(file, X_train=parts[0], y_train=parts[2], X_test=parts[1])
        script = [__file__, "--fit"] if which in OURS else [str(HERE / "_peers.py")]
        try:
            out = subprocess.run([interpreter, *script, which, file], capture_output=True, text=True, timeout=LIMIT,
                                 env=os.environ | ONE_THREAD)  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"status": "timeout"}
    if out.returncode:
        return None if "not usable here" in out.stderr else {"status": out.stderr.strip().splitlines()[-1]}
    got = json.loads(out.stdout)
    L = np.array(got["components"]).T
    near = KNeighborsClassifier(3).fit(parts[0] @ L, parts[2])
    return {"status": "ok", "error": 1 - near.score(parts[1] @ L, parts[3]), "seconds": got["seconds"]}


def table(rows):
    """Print mean error, its standard error and mean seconds."""
    cells = defaultdict(list)
    for row in rows:
        if row["status"] == "ok":
            cells[row["data"], row["peer"]].append((row["error"], row["seconds"]))
    for name in DATA:
        here = [(peer, np.array(values).T) for (data, peer), values in cells.items() if data == name]
        if here:
            print(f"\n{name}")
        for peer, (errors, seconds) in sorted(here, key=lambda item: item[1][0].mean()):
            spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
            print(f"  {peer:14s} {errors.mean():7.2%} +- {spread:6.2%}  {seconds.mean():9.2f} s  {len(errors)} splits")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=DATA)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peers", default=",".join((*OURS, *PEERS)))
    parser.add_argument("--out", default="accuracy.jsonl")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=interpreter")
    wanted = parser.parse_args()
    interpreters = dict(item.split("=", 1) for item in wanted.python)
    out = Path(wanted.out)
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(row["data"], row["seed"], row["peer"]) for row in rows}
    for name in wanted.data:
        for seed in range(wanted.seeds):
            parts = split(name, seed)
            if parts is None:
                print(f"{name} not found (set TRISCREEN_DATA): skipped")
                break
            for peer in wanted.peers.split(","):
                if (name, seed, peer) in done:
                    continue
                got = measure(peer, parts, interpreters.get(peer, sys.executable))
                if got is None:
                    print(f"{peer}: not installed, left out")
                    continue
                rows.append({"data": name, "seed": seed, "peer": peer, **got})
                with out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(f"{name} {seed} {peer}: {got}", flush=True)
    table(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit_ours(*sys.argv[2:])
    else:
        main()
