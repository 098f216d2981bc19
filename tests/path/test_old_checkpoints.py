"""Checkpoints and files of format 1 are read for ever."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import triscreen as ts
import versions
from archives import contents, rewritten
from triscreen._utils import archive as files
from triscreen._utils.checkpoint import look


@pytest.fixture(params=["given", "knn", "all"])
def sample(request, tmp_path):
    """(problem, a copy of its checkpoint of format 1)."""
    folder = tmp_path / request.param
    shutil.copytree(versions.SAMPLES / request.param, folder)
    return versions.problems()[request.param], folder


def rows(path):
    return [np.array([getattr(row, name) for name in ("lam", "primal", "gap", "loss", "size")]) for row in path._rows]


def test_a_checkpoint_of_format_1_goes_on(sample):
    """What it holds is taken as it is, the rest is written in format 2, and that can be resumed in turn."""
    problem, folder = sample
    before = contents(folder)
    old = [files.load(folder / f"{n:06d}.tsc").meta["row"]["primal"] for n in range(versions.DONE)]
    whole = ts.solve_path(problem, **versions.ARGUMENTS)
    part = ts.solve_path(problem, **versions.ARGUMENTS, checkpoint=folder, callback=lambda s: s.n_lambdas == 5)
    assert len(part) == 5
    path = ts.solve_path(problem, **versions.ARGUMENTS, checkpoint=folder)
    assert path.primals[: versions.DONE].tolist() == old
    assert path.converged.all()
    assert all(proof.rel_gap <= 2 * path.tol for proof in path.certify())
    if (whole.primals[: versions.DONE] == old).all():  # this machine rounds as the one that made the samples
        assert all((a == b).all() for a, b in zip(rows(path), rows(whole), strict=True))
        assert all((path.M(t) == whole.M(t)).all() for t in range(len(whole)))
    assert np.allclose(path.primals, whole.primals, rtol=1e-5)
    assert {name: data for name, data in contents(folder).items() if name in before} == before
    assert [files.load(folder / f"{n:06d}.tsc").version for n in range(len(path))] == [1] * 3 + [files.VERSION] * 4
    assert look(folder).version == 1


@pytest.mark.parametrize("change", [
    lambda meta, arrays: meta["row"].update(gap=1e-9 * meta["row"]["gap"] + 1e-30, primal=2 * meta["row"]["primal"]),
    lambda meta, arrays: meta["row"].update(lam=2 * meta["row"]["lam"]),
    lambda meta, arrays: meta["row"].pop("loss"),
    lambda meta, arrays: meta.pop("row"),
    lambda meta, arrays: meta["row"].update(primal="much"),
    lambda meta, arrays: meta["row"].update(slack=np.nan),
    lambda meta, arrays: meta["row"].update(n_iter=1.5),
    lambda meta, arrays: meta["row"].update(events=[1]),
    lambda meta, arrays: arrays.update(factor=arrays["factor"][:1]),
    lambda meta, arrays: arrays.update(factor=2 * arrays["factor"]),
    lambda meta, arrays: arrays.update(factor=np.array(["a", "b"])),
    lambda meta, arrays: arrays.pop("factor"),
    lambda meta, arrays: meta.pop("walk"),
    lambda meta, arrays: meta["walk"].pop("eta"),
    lambda meta, arrays: meta["walk"].update(eta="large"),
    lambda meta, arrays: meta["walk"].update(points=[]),
    lambda meta, arrays: meta["walk"].update(points=[0.0, 128.0]),
    lambda meta, arrays: meta["walk"].update(working=[1]),
    lambda meta, arrays: meta["walk"].update(last=[0.5, 1.0, 1.0]),
    lambda meta, arrays: meta["walk"].update(wait=[1.0, 2]),
    lambda meta, arrays: arrays.pop("state point M0"),
    lambda meta, arrays: arrays.update({"state point A0": np.ones(3)}),
    lambda meta, arrays: arrays.update({"state point A0": arrays["state point A0"].astype("f4")}),
    lambda meta, arrays: arrays.update({"state point M1": np.nan * arrays["state point M1"]}),
    lambda meta, arrays: arrays.update({"state more": np.ones(3)}),
])  # fmt: skip
def test_an_entry_of_format_1_that_does_not_fit_is_refused_and_left(sample, change, monkeypatch):
    """Its bytes are valid: it was edited, or is another run's."""
    problem, folder = sample
    _, meta, arrays = files.read(folder / "000002.tsc")
    change(meta, arrays)
    monkeypatch.setattr(files, "VERSION", 1)
    files.write(folder / "000002.tsc", "entry", meta, arrays)
    monkeypatch.undo()
    before = contents(folder)
    with pytest.raises(ts.InputError, match=r"^checkpoint=") as caught:
        ts.solve_path(problem, **versions.ARGUMENTS, checkpoint=folder)
    assert "\n" not in str(caught.value)
    assert contents(folder) == before


def test_entries_of_another_run_of_format_1_are_refused(tmp_path):
    """They carry nothing to know them by, but their certificates do not hold."""
    problems = versions.problems()
    folder = tmp_path / "given"
    shutil.copytree(versions.SAMPLES / "given", folder)
    for name in ("000001.tsc", "000002.tsc"):
        shutil.copy(versions.SAMPLES / "all" / name, folder)
    with pytest.raises(ts.InputError, match=r"'000001.tsc' claims a gap of"):
        ts.solve_path(problems["given"], **versions.ARGUMENTS, checkpoint=folder)
    shutil.copy(versions.SAMPLES / "given" / "000002.tsc", folder / "000003.tsc")
    for name in ("000001.tsc", "000002.tsc"):
        shutil.copy(versions.SAMPLES / "given" / name, folder)
    with pytest.raises(ts.InputError, match=r"'000003.tsc' has lam=128.0, and 96.0 comes next"):
        ts.solve_path(problems["given"], **versions.ARGUMENTS, checkpoint=folder)


def test_another_problem_does_not_have_the_identity_of_format_1(tmp_path):
    problems = versions.problems()
    for name in problems:
        folder = tmp_path / name
        shutil.copytree(versions.SAMPLES / name, folder)
        before = contents(folder)
        for other in problems.keys() - {name}:
            with pytest.raises(ts.InputError, match="belongs to another run"):
                ts.solve_path(problems[other], **versions.ARGUMENTS, checkpoint=folder)
        with pytest.raises(ts.InputError, match="belongs to another run"):
            ts.solve_path(problems[name], **{**versions.ARGUMENTS, "tol": 2.0**-19}, checkpoint=folder)
        assert contents(folder) == before


def test_files_of_format_1_are_loaded():
    path = ts.load(versions.SAMPLES / "given.path")
    assert path.lambdas.tolist() == versions.ARGUMENTS["lambdas"]
    assert path.converged.all()
    assert all(proof.rel_gap <= 2 * path.tol for proof in path.certify(versions.problems()["given"]))
    model, data = versions.models()["comparisons.model"]
    again = ts.load(versions.SAMPLES / "comparisons.model")
    assert np.allclose(again.transform(versions.X), model.fit(*data).transform(versions.X), atol=1e-6)
    again = ts.load(versions.SAMPLES / "pipeline.model")  # its cross-validation knew neither starts nor votes
    Z, metric = again[0].transform(versions.X), again[1]
    problem = ts.Problem(Z, ts.knn_triplets(Z, versions.Y, 1))
    assert problem.certificate(metric.solution_.M, metric.lam_).rel_gap <= 1.1 * metric.tol
    assert np.allclose(again.transform(versions.X), Z @ metric.components_.T)
    assert metric.path_.lambdas[metric.best_index_] == metric.lam_


def test_a_newer_format_of_any_part_is_refused(tmp_path):
    problem = versions.problems()["given"]
    ts.solve_path(problem, **versions.ARGUMENTS, checkpoint=tmp_path / "a")
    for name in ("checkpoint.tsc", "000003.tsc", "state-000006.tsc"):
        folder = tmp_path / name
        shutil.copytree(tmp_path / "a", folder)
        rewritten(folder / name, lambda header, members: header.update(version=files.VERSION + 1))
        said = f"was written by a newer triscreen, format {files.VERSION + 1}: this one reads up to {files.VERSION}"
        with pytest.raises(ts.InputError, match=said):
            ts.solve_path(problem, **versions.ARGUMENTS, checkpoint=folder)
