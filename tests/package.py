"""`make dist`: what is in the wheel and the source archive, and the wheel in an empty environment without any extra."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

# Without extras: a problem from labels to a proof, an estimator, a file.
WORKS = """
import os, tempfile, triscreen as ts
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
path = ts.solve_path(ts.Problem(X, ts.knn_triplets(X, y, k=3)), ratio=0.5)
assert path.converged.all()
model = ts.TripletMetric().fit(X, y)
file = os.path.join(tempfile.mkdtemp(), "iris.model")
ts.save(model, file)
assert (ts.load(file).transform(X) == model.transform(X)).all()
"""
# What needs an extra, and the extra that it has to name.
NEEDS = {
    "report": "from triscreen.report.page import render; render(path)",
    "notebook": "path.plot_gaps()",
    "onnx": "from triscreen.estimators.onnx import to_onnx; to_onnx(model)",
    "faiss": "ts.export(model, file + '.faiss')",
    "verify": "ts.verify(ts.Problem(X, ts.knn_triplets(X, y, k=3)), path.M(0), path.lambdas[0])",
    "dask": "ts.TripletMetricCV(scheduler='current').fit(X, y)",
    "parquet": "open(file, 'wb').write(b'PAR1' + bytes(20) + b'PAR1'); ts.datasets.read_points(file)",
}


def check_contents(wheel, source):
    """Refuse a wheel with anything but the package, or a source archive without what tests need."""
    names = zipfile.ZipFile(wheel).namelist()
    strange = [n for n in names if not n.startswith(("triscreen/", "triscreen-")) or "test" in n.split("/")[0]]
    assert not strange, strange
    assert "triscreen/py.typed" in names, names
    kinds = {Path(n).suffix for n in names if n.startswith("triscreen/")}
    assert kinds <= {".py", ".typed", ".html", ".css", ".js"}, kinds
    with tarfile.open(source) as archive:
        there = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "tests/test_docs.py"} <= there
    assert Path(wheel).stat().st_size < 1e6, "the wheel has grown beyond 1 MB"


def check_alone(wheel):
    """Install the wheel alone, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        python = str(binaries / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)], check=True)
        subprocess.run([python, "-c", WORKS], check=True, cwd=folder)
        for extra, code in NEEDS.items():
            ended = subprocess.run([python, "-c", WORKS + code], capture_output=True, text=True, cwd=folder)
            assert ended.returncode, f"{extra}: it should not work without"
            assert f"triscreen[{extra}]" in ended.stderr.splitlines()[-1], ended.stderr
        ended = subprocess.run([str(binaries / "triscreen"), "demo"], capture_output=True, text=True, cwd=folder)
        assert "triscreen[cli]" in ended.stderr, ended.stderr


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_contents(wheel, source)
    check_alone(wheel.resolve())
    sys.stdout.write(f"{wheel.name} and {source.name}: as they should be\n")
