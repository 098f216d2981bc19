"""A proof needs nothing of what it proves: no engine, no kernels, no solver, and not even numba."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import triscreen as ts
from problems import make_case
from triscreen import verification

FILES = sorted(Path(verification.__file__).parent.glob("*.py"))
ALLOWED = ("triscreen.errors", "triscreen._utils.validation", "triscreen.verification")

SCRIPT = """
import json, sys
from types import SimpleNamespace as Plain

sys.modules["numba"] = sys.modules["scipy"] = None  # whoever asks for them fails
import numpy as np
from triscreen.verification import margins_in, verify

told = json.load(sys.stdin)
rows, weights = np.array(told["rows"]), np.array(told["weights"])
triplets = Plain(
    n_triplets=len(rows), indices=lambda a=0, b=None: rows[a:b], weights_of=lambda a=0, b=None: weights[a:b]
)
problem = Plain(triplets=triplets, loss=Plain(gamma=told["gamma"]), cone=Plain(name="psd"), prior=None,
                given_points=lambda: np.array(told["X"]))
proof = verify(problem, told["M"], told["lam"])
inside = margins_in(np.array(told["X"])[rows[0]], told["M"], 0.1)
fine = ("errors", "_utils", "verification")
ours = sorted(m for m in sys.modules if m.startswith("triscreen.") and m.split(".")[1] not in fine)
print(json.dumps({"gap": proof.gap, "primal": proof.primal, "inside": inside, "loaded": ours}))
"""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_imports_nothing_of_what_it_proves(file):
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert not name.startswith("triscreen") or name.startswith(ALLOWED), f"{file.name} imports {name}"


def test_a_proof_of_plain_data_without_engine_and_numba():
    case = make_case(3, weighted=True)
    lam = 0.05 * case.problem.lambda_max()
    M = ts.solve(case.problem, lam, tol=1e-6).M
    told = {"X": case.X.tolist(), "rows": np.asarray(case.indices).tolist(), "weights": case.w.tolist()}
    told |= {"gamma": case.gamma, "lam": lam, "M": M.tolist()}
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=json.dumps(told), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["loaded"] == []
    proof = ts.verify(case.problem, M, lam)
    assert (found["gap"], tuple(found["primal"])) == (proof.gap, proof.primal)
    assert found["inside"][0] < found["inside"][1]
