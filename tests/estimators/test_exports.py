"""Models for elsewhere: what others read back does what `transform` does; and a path is a model."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline

import triscreen as ts
from commands import invoke, refusal
from triscreen.estimators.exports import FORMATS

X, Y = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def model():
    return make_pipeline(ts.Scaling(), ts.TripletMetric(n_components=4, tol=1e-2)).fit(X, Y)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One file of each kind that the command line makes: what is learned from labels, folds, comparisons, a path."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    rows = [rng.choice(178, 3, replace=False) for _ in range(60)]
    (folder / "rows.csv").write_text("".join(f"{a},{b},{c}\n" for a, b, c in rows))
    np.savetxt(folder / "points.csv", X, delimiter=",")
    for name, *words in (
        ("labels", "fit", "wine", "--lam-ratio", "0.1", "--tol", "1e-2"),
        ("folds", "fit", "wine", "--cv", "2", "--tol", "1e-2"),
        ("classifier", "fit", "wine", "--cv", "2", "--tol", "1e-2", "--classifier", "--components", "3"),
        ("compared", "fit", folder / "points.csv", "--comparisons", folder / "rows.csv", "--tol", "1e-2"),
        ("path", "path", "wine", "--ratio", "0.5", "--n-lambdas", "6", "--tol", "1e-2"),
    ):
        done = invoke(*words, "-q", "-o", folder / name)
        assert done.code == 0, done
    return folder


def read_back(file, kind, X):
    """Return what the reader of a format makes of points, as they are."""
    if kind == "npz":
        with np.load(file, allow_pickle=False) as found:
            return (X - found["shift"]) @ found["matrix"] + found["offset"]
    if kind == "safetensors":
        found = pytest.importorskip("safetensors.numpy").load_file(file)
        return (X - found["shift"]) @ found["matrix"] + found["offset"]
    if kind == "sentence-transformers":
        found = pytest.importorskip("safetensors.numpy").load_file(file / "model.safetensors")
        settings = json.loads((file / "config.json").read_text())
        assert found["linear.weight"].shape == (settings["out_features"], settings["in_features"])
        assert found["linear.bias"].shape == (settings["out_features"],)
        assert settings["bias"] is True
        assert settings["activation_function"] == "torch.nn.modules.linear.Identity"
        assert found["linear.weight"].dtype == found["linear.bias"].dtype == np.float32
        return X @ found["linear.weight"].T + found["linear.bias"]
    if kind == "faiss":
        faiss = pytest.importorskip("faiss")
        index = faiss.read_index(str(file))
        assert index.ntotal == 0
        return index.chain.at(0).apply(X.astype(np.float32))
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    Z = session.run(None, {"X": X.astype(np.float32)})[0]
    assert Z.dtype == np.float32
    return Z


def needs(kind):
    for module in {"faiss": ("faiss",), "onnx": ("onnx", "onnxruntime")}.get(kind, ()):
        pytest.importorskip(module)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_others_read_does_the_same(model, tmp_path, kind):
    needs(kind)
    file, expected = tmp_path / "it", model.transform(X)
    for _ in range(2):  # what is there is replaced
        ts.export(model, file, kind)
    assert [found.name for found in tmp_path.iterdir()] == ["it"]
    np.testing.assert_allclose(read_back(file, kind, X), expected, atol=1e-4 * np.abs(expected).max())


def test_a_faiss_index_has_the_learned_distances_of_points_as_they_are(model, tmp_path):
    faiss = pytest.importorskip("faiss")
    ts.export(model, tmp_path / "a.faiss")
    index = faiss.read_index(str(tmp_path / "a.faiss"))
    index.add(X.astype(np.float32))
    squares, near = index.search(X[:5].astype(np.float32), 4)
    Z = model.transform(X)
    exact = np.square(Z[:5, None] - Z[None]).sum(axis=2)
    np.testing.assert_allclose(squares, np.take_along_axis(exact, near, axis=1), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(squares, np.sort(exact, axis=1)[:, :4], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("kind", "package"), [("onnx", "onnx"), ("faiss", "faiss")])
def test_a_package_that_is_missing_is_named_whole_and_the_file_is_not_blamed(
    made, tmp_path, monkeypatch, kind, package
):
    monkeypatch.setitem(sys.modules, package, None)
    said = refusal("export", made / "labels", "--to", kind, "-o", tmp_path / "it")
    assert said.endswith(f"need it (pip install 'triscreen[{package}]')")
    assert f"error: {package} is not installed" in said
    said = refusal("export", made / "labels", "--to", "faiss", "--dtype", "float64", "-o", tmp_path / "it")
    assert "error: dtype='float64'" in said


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["labels", "folds", "classifier", "compared", "path"])
def test_every_model_of_the_command_line_is_exported_with_its_scaling(made, tmp_path, name, kind):
    needs(kind)
    file = tmp_path / "it"
    done = invoke("export", made / name, "--to", kind, "-o", file)
    *votes, wrote = done.err.splitlines()
    assert (done.code, wrote) == (0, f"triscreen: wrote {str(file)!r}")
    assert ["the votes that decide about classes stay" in line for line in votes] == [True] * (name == "classifier")
    found = ts.load(made / name)
    found = ts.as_model(found) if name == "path" else found
    if hasattr(found[0], "feature_names_in_"):
        del found[0].feature_names_in_  # X has no names
    expected = found.transform(X)
    np.testing.assert_allclose(read_back(file, kind, X), expected, atol=1e-4 * np.abs(expected).max())
    assert found.transform(X.astype(np.float32)).dtype == np.float32


def test_the_format_is_what_the_name_ends_with(model, tmp_path):
    ts.export(model, tmp_path / "a.npz", dtype=np.float32)
    with np.load(tmp_path / "a.npz") as found:
        assert {array.dtype.name for array in found.values()} == {"float32"}
    with pytest.raises(ts.InputError, match=r"to=None: the name .* does not end with .onnx"):
        ts.export(model, tmp_path / "a.dat")
    with pytest.raises(ts.InputError, match="to='pickle': to must be one of 'onnx'"):
        ts.export(model, tmp_path / "a", "pickle")
    with pytest.raises(ts.InputError, match="dtype='float64': dtype must be float32 for to='faiss'"):
        ts.export(model, tmp_path / "a", "faiss", "float64")
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


def test_a_folder_of_something_else_is_left_alone(model, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(ts.InputError, match="is there and no Dense module"):
        ts.export(model, tmp_path / "mine", "sentence-transformers")
    assert [file.name for file in tmp_path.rglob("*")] == ["mine", "thesis.txt"]


def test_a_path_is_a_model(made, tmp_path):
    path = ts.load(made / "path")
    errors, frames = path.facts["errors"], path.facts["frames"]
    best = int(frames[int(np.argmin(errors))])
    assert ts.as_model(path)[-1].lam_ == path.lambdas[best]
    assert ts.as_model(path, -1)[-1].lam_ == path.lambdas[-1]
    between = float(np.sqrt(path.lambdas[2] * path.lambdas[3]))
    found = ts.as_model(path, between)[-1]
    assert found.lam_ == between
    assert found.rel_gap_ == path.at(between).rel_gap
    model = ts.as_model(path, 3)
    np.testing.assert_allclose(model[-1].get_mahalanobis_matrix(), path.M(3), atol=1e-9 * np.abs(path.M(3)).max())
    np.testing.assert_array_equal(model[0].shift_, path.facts["shift"])
    assert list(model[0].feature_names_in_) == path.facts["feature_names"]
    ts.save(model, tmp_path / "m")
    del model[0].feature_names_in_
    again = ts.load(tmp_path / "m")
    del again[0].feature_names_in_
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    for lam, words in (("3", 3), ("best", "best"), (repr(between), between)):
        wanted = ts.as_model(path, words)
        assert invoke("transform", made / "path", "wine", "--lam", lam, "-o", tmp_path / "z.npy").code == 0
        del wanted[0].feature_names_in_
        np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wanted.transform(X), atol=1e-12)
    assert invoke("export", made / "path", "--lam", "3", "-o", tmp_path / "it.model").code == 0
    assert ts.load(tmp_path / "it.model")[-1].lam_ == path.lambdas[3]
    assert invoke("transform", tmp_path / "it.model", "wine", "-o", tmp_path / "z.npy").code == 0


@pytest.mark.parametrize(
    ("lam", "words"),
    [
        ("6", "lam=6: this path has 6 lambdas, numbered from 0 to 5"),
        ("1e99", "lam=1e+99: this path goes from"),
        ("-1.5", "lam=-1.5: lam must be a positive number"),
        ("nothing", "lam='nothing': it must be best, a lambda such as 0.01, or the number of one"),
    ],
)
def test_a_lambda_that_is_not_there_is_refused(made, tmp_path, lam, words):
    for command in (("export", made / "path", "-o", tmp_path / "a.npz"), ("transform", made / "path", "wine")):
        assert words in refusal(*command, "--lam", lam)
    assert "has one lambda only" in refusal("export", made / "labels", "--lam", "best", "-o", tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_a_path_without_held_out_errors_has_no_best(tmp_path):
    problem = ts.Problem(X, ts.knn_triplets(X, Y, k=2))
    path = ts.solve_path(problem, n_lambdas=3, ratio=0.5, tol=1e-2)
    with pytest.raises(ts.InputError, match="lam='best': this path has no held-out errors to choose by"):
        ts.as_model(path)
    for lam in (True, "first", None):
        with pytest.raises(ts.InputError, match="it must be 'best', a lambda or the number of one"):
            ts.as_model(path, lam)
    with pytest.raises(ts.InputError, match="path is a ndarray: a Path is needed"):
        ts.as_model(X)
    np.testing.assert_allclose(ts.as_model(path, 1).transform(X), X @ path.components(1).T)
