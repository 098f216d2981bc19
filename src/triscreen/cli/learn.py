"""``triscreen path`` and ``triscreen fit``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from triscreen._utils.progress import progress, silent
from triscreen.cli.clusters import client_on, problem_on
from triscreen.cli.common import Clock, about, answer, as_bytes, command, file_of, how_to_read, say, values
from triscreen.cli.estimate import estimate, one_lambda, plan_of_fit, plan_of_path
from triscreen.cli.made import Made, fit_scaling, hold_out, make_problem, names_of, put, read_data, validation
from triscreen.cli.options import (
    Absent,
    Categories,
    Comparisons,
    Cone,
    Data,
    Dates,
    Debug,
    Decimal,
    Drop,
    Header,
    Json,
    Label,
    Names,
    Quiet,
    Scale,
    Scheduler,
    Sign,
    Suspects,
    Triplets,
    Workers,
    as_typed,
    refuse_idle,
)
from triscreen.cli.outputs import check_files, resumable
from triscreen.cli.starts import files_of, read_start, words_of
from triscreen.cli.telling import cut, errors, numbers_of, verdict
from triscreen.errors import InputError

Output = Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)]
K = Annotated[int, typer.Option("--k", "-k", help="Neighbours that triplets are made of.")]
Kind = Annotated[
    Triplets,
    typer.Option(
        help="knn: k nearest of the class times k nearest of others; lmnn: k nearest of the class against all others; "
        "all: every triplet."
    ),
]
Scaling = Annotated[Scale, typer.Option(help="none, minmax [0, 1], standard, libsvm [-1, 1].")]
Gamma = Annotated[float, typer.Option(help="Width of the smoothed hinge; 0: the hinge.")]
Metrics = Annotated[Cone, typer.Option(help="psd: every metric; diagonal: weights of features.")]
Checkpoint = Annotated[
    Path,
    typer.Option(help="Folder to go on from; by default OUTPUT.checkpoint, removed when done.", show_default=False),
]
Seconds = Annotated[float, typer.Option(help="Stop the whole command after so many seconds.", show_default=False)]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Threads at most; by default all that help.", show_default=False)
]
Memory = Annotated[str, typer.Option(help="Bytes at most, such as 500MB or 2GB.", show_default=False)]
Prior = Annotated[
    str,
    typer.Option(
        help="Metric to begin with and to stay close to: none, identity, within (inverse covariance within classes) or "
        "a file with a metric or a model.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many triplets, how much memory, how long; then end.")]


@command
def path(
    ctx: typer.Context,
    data: Data,
    output: Output = None,
    label: Label = None,
    k: K = 5,
    triplets: Kind = Triplets.knn,
    comparisons: Comparisons = None,
    names: Names = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    missing: Absent = None,
    categories: Categories = [],  # noqa: B006
    dates: Dates = [],  # noqa: B006
    decimal: Sign = Decimal.point,
    scale: Scaling = Scale.standard,
    gamma: Gamma = 0.05,
    cone: Metrics = Cone.psd,
    prior: Prior = "none",
    ratio: Annotated[float, typer.Option(help="From one lambda to the next.")] = 0.9,
    n_lambdas: Annotated[int | None, typer.Option(help="Lambdas at most.", show_default=False)] = None,
    tol: Annotated[float, typer.Option(help="Relative duality gap of every metric.")] = 1e-6,
    guarantee: Annotated[
        float | None,
        typer.Option(help="Relative gap for every lambda in between; it chooses them.", show_default=False),
    ] = None,
    test_share: Annotated[
        float, typer.Option(help="Share of points (or comparisons) held out for the error; 0: none.")
    ] = 0.25,
    seed: Annotated[int, typer.Option(help="Of the choice of held-out points.")] = 0,
    validate: Annotated[
        str | None,
        typer.Option(
            help="Points (or comparisons) to validate with, in a file; all of DATA is learned from then.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report too.", show_default=False)] = None,
    suspects: Suspects = None,
    checkpoint: Checkpoint = None,
    max_seconds: Seconds = None,
    jobs: Jobs = None,
    memory: Memory = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Solve a whole path of lambdas: metrics from strongly to weakly regularised, each with its certificate.

    A quarter of the points is held out to show the error; Ctrl-C stops, the same command goes on.

    Example: triscreen path wine -o wine.path --report wine.html
    """
    clock = Clock(max_seconds)
    refuse_idle(ctx)
    folder = _folder(checkpoint, output)
    _check_output(output, dry_run)
    words = words_of(prior, "prior", labelled=comparisons is None)
    check_files([("data", data), ("comparisons", comparisons), ("names", file_of(names)), ("validate", validate),
                 *files_of(words, "prior")],
                {"output": output, "report": report, "suspects": suspects, "checkpoint": folder})  # fmt: skip
    if not 0 <= test_share < 1:
        raise InputError(f"test_share={test_share}: it must be at least 0 and smaller than 1")
    import triscreen as ts

    choice = how_to_read(label, drop, header, missing, categories, dates, decimal)
    rows, points = read_data(data, comparisons, names, **choice, quiet=quiet)
    from triscreen.cli.story import Story  # what is slow to import, once the data is good
    from triscreen.path.api import TOLD
    from triscreen.report import gather, write_report, write_suspects

    if validate is None:
        learned, held_out, scaling = hold_out(points, rows, test_share, seed, scale.value)
    else:
        learned, _, scaling = hold_out(points, rows, 0, seed, scale.value)
        held_out = validation(validate, data, points, rows, names, scaling, {**choice, "quiet": quiet})
    wanted = learned, triplets.value, k, gamma, cone.value, jobs, as_bytes(memory)
    start = read_start(prior, "prior", scaling, points.feature_names, cone.value)
    if dry_run:
        with about(points.name):
            plan = plan_of_path(test_share, ratio, n_lambdas, report is not None)

            def work(some, seen):
                ts.solve_path(make_problem(some, *wanted[1:], start), ratio=ratio, tol=tol, guarantee=guarantee,
                              n_lambdas=n_lambdas, screening=TOLD, callback=seen)  # fmt: skip

            return estimate(plan, *wanted, json, work, start is not None)
    with silent(quiet), about(points.name), clock.ending("triplets were made"):
        client = ctx.with_resource(client_on(scheduler, workers))
        problem = make_problem(*wanted, start) if client is None else problem_on(client, *wanted, start)
        if client is not None:
            ctx.call_on_close(problem.triplets.pool.close)  # before the client goes
    with resumable(folder, checkpoint is not None, quiet) as kept:
        with silent(quiet), about(points.name), clock.named():
            found = ts.solve_path(problem, ratio=ratio, tol=tol, guarantee=guarantee, n_lambdas=n_lambdas,
                                  screening=TOLD, max_seconds=clock.left(), checkpoint=folder)  # fmt: skip
        clock.refuse_nothing(map(found.M, range(len(found))), found.stopped_by)
        with silent(quiet):
            gather(found, problem, learned.X, learned.y, held_out.X, held_out.y, held_out.rows, points.feature_names,
                   points.name, maps=report is not None, max_seconds=clock.left(),
                   point_names=names_of(learned.numbers, points), scaling=scaling,
                   test_names=None if held_out.numbers is None else names_of(held_out.numbers, points))  # fmt: skip
        begun = None if problem.prior is None else prior
        found.facts = replace(found.facts, prior=begun, command=as_typed(ctx), file=str(output),
                              columns=points.preparation and points.preparation.plain())  # fmt: skip
        if found.recipe is not None:  # of points that are here
            found.recipe["command"] = {
                "label": label, "names": names, "drop": drop, "header": header, "comparisons": comparisons is not None,
                **{name: choice[name] for name in ("missing", "categories", "dates", "decimal")},
                "k": k, "triplets": triplets.value, "scale": scale.value, "gamma": gamma, "cone": cone.value,
                "prior": prior, "test_share": 0.0 if validate is not None else test_share, "seed": seed,
            }  # fmt: skip
        ts.save(found, output)
        if report is not None:
            write_report(found, report)
        if suspects is not None and found.facts.suspects is not None:  # without time there are none, and it is said
            write_suspects(found, suspects)
        late = _out_of_time(found, max_seconds, found.facts.left_out)
        kept.keep |= late
    story = Story(found)
    if json:
        answer({"output": str(output), "source": points.name, "n_points": len(learned.X), **story.numbers()})
    elif not quiet:
        story.show(stderr=True)
        written = [output, report, None if found.facts.suspects is None else suspects]
        say("wrote " + " and ".join(repr(str(file)) for file in written if file is not None))
    return 0 if found.converged.all() and not late else 1


@command
def fit(
    ctx: typer.Context,
    data: Data,
    output: Output = None,
    label: Label = None,
    k: K = 5,
    triplets: Kind = Triplets.knn,
    comparisons: Comparisons = None,
    names: Names = None,
    drop: Drop = [],  # noqa: B006
    header: Header = None,
    missing: Absent = None,
    categories: Categories = [],  # noqa: B006
    dates: Dates = [],  # noqa: B006
    decimal: Sign = Decimal.point,
    scale: Scaling = Scale.standard,
    gamma: Gamma = 0.05,
    cone: Metrics = Cone.psd,
    prior: Prior = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            help="Metrics to begin with that cross-validation tries, as for --prior; by default none,identity,within.",
            show_default=False,
        ),
    ] = None,
    lam: Annotated[float | None, typer.Option(help="This lambda, no cross-validation.", show_default=False)] = None,
    lam_ratio: Annotated[
        float | None, typer.Option(help="This share of lambda_max (try 1e-3), no cross-validation.", show_default=False)
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(
            help="Folds that choose lambda, in the order of the points; by default five of shuffled points, "
            "repeated for few. With --comparisons: folds without common points, by default none.",
            min=2,
            show_default=False,
        ),
    ] = None,
    tol: Annotated[float, typer.Option(help="Relative duality gap.")] = 1e-4,
    rounds: Annotated[int, typer.Option(help="Choose neighbours again by the metric just learned.")] = 1,
    certify: Annotated[
        float | None,
        typer.Option(
            help="Prove that no lambda of the range has an error on the folds that is lower by more than this.",
            show_default=False,
        ),
    ] = None,
    components: Annotated[int | None, typer.Option(help="Keep so many directions only.", show_default=False)] = None,
    classifier: Annotated[
        bool, typer.Option("--classifier", help="Learn to predict classes, too: the model keeps points that vote.")
    ] = False,
    checkpoint: Checkpoint = None,
    max_seconds: Seconds = None,
    jobs: Jobs = None,
    memory: Memory = None,
    dry_run: DryRun = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
):
    """Learn one metric and save it, with its scaling, as a model: lambda is chosen by cross-validation.

    With --lam or --lam-ratio it is given; with --comparisons the metric is learned from these, not from labels. With
    --classifier the folds choose how many neighbours vote and how, too, and triscreen predict says the class of points.

    Example: triscreen fit wine -o wine.model
    """
    clock = Clock(max_seconds)
    refuse_idle(ctx)
    single = comparisons is not None or lam is not None or lam_ratio is not None
    folder = None if single else _folder(checkpoint, output)
    _check_output(output, dry_run)
    words = {name: words_of(text, name, name == "candidates", comparisons is None)
             for name, text in (("prior", prior), ("candidates", candidates))}  # fmt: skip
    files = [file for name, some in words.items() for file in files_of(some, name)]
    check_files(
        [("data", data), ("comparisons", comparisons), ("names", file_of(names)), *files],
        {"output": output, "checkpoint": folder},
    )
    if lam is not None and lam_ratio is not None:
        raise InputError(f"lam={lam}, lam_ratio={lam_ratio}: give one of the two")
    import triscreen as ts
    from triscreen.datasets.seals import seals

    choice = how_to_read(label, drop, header, missing, categories, dates, decimal)
    rows, points = read_data(data, comparisons, names, **choice, quiet=quiet)
    scaling = fit_scaling(scale.value, points.X, points.feature_names)
    if points.preparation is not None:
        scaling.columns_ = points.preparation.plain()  # transform makes the same features of new files
    learned, budget = Made(put(scaling, points.X), points.y, rows), as_bytes(memory)
    starts = _starts(words, scaling, points.feature_names, cone.value)
    shared = {"gamma": gamma, "cone": cone.value, "tol": tol, "n_components": components, "n_jobs": jobs,
              "max_seconds": max_seconds, "memory_budget": budget}  # fmt: skip
    labelled = {"n_neighbors": k, "triplets": triplets.value, "rounds": rounds}
    given = {"lam": lam, "lam_ratio": "auto" if lam_ratio is None else lam_ratio, "prior": starts[0]}
    if rows is not None:
        by_folds = {} if cv is None else {"lam": "cv", "cv": cv}
        metric = ts.ComparisonMetric(learned.X, **{**given, **by_folds}, **shared)
    elif single:
        metric = ts.TripletMetric(**given, **labelled, **shared)
    elif classifier:
        metric = ts.TripletClassifier(cv=cv, candidates=tuple(starts), **labelled, **shared)
    else:
        metric = ts.TripletMetricCV(cv=cv, candidates=tuple(starts), certify=certify, **labelled, **shared)
    if dry_run:
        from triscreen.estimators.folds import repeats_of

        compared = None if rows is None else one_lambda(lam, lam_ratio, cv, points.X.shape[1])
        repeats, walks = 1 if cv or single else repeats_of(points.y), compared[2] if compared else 0
        plan = plan_of_fit(single, cv or 5, rounds, len(starts), repeats, walks, tol)
        with about(points.name):
            prior, work = any(start is not None for start in starts), _rehearsed_by(metric)
            wanted = learned, triplets.value, k, gamma, cone.value, jobs, budget
            return estimate(plan, *wanted, json, work, prior, compared)
    with resumable(folder, checkpoint is not None, quiet) as kept:
        with silent(quiet), about(points.name), clock.named():
            _fit(metric, learned, folder, clock)
            if rows is not None:
                metric.seals_ = seals(points.X, rows)  # evaluate knows them again
        ts.save(make_model(scaling, metric), output)
        late = not single and _out_of_time(metric.path_, max_seconds, _folds_left_out(metric))
        kept.keep |= late
    numbers = numbers_of(metric, len(learned.X), scale.value, clock.spent())
    numbers["start"] = _word(metric, numbers["start"], words)
    if json:
        answer({"output": str(output), "source": points.name, **numbers})
    elif not quiet:
        shown = {name: value for name, value in numbers.items() if not isinstance(value, dict | list)}
        values(points.name, shown, stderr=True)
        if not single:
            say(verdict(numbers))
        if "error_before" in numbers:
            say(errors(numbers))
        if metric.truncation_ is not None:
            say(cut(metric.truncation_, len(metric.components_)))
        if certify is not None:
            first, last = metric.certified_ratios_[[0, -1]]
            say(f"proven: error {numbers['error']:.2%} on the folds, and no lambda from {first:.3g} to {last:.3g} of "
                f"lambda_max has one that is lower by more than {numbers['selection_gap']:.2%}")  # fmt: skip
        say(f"wrote {str(output)!r}")
    return 0 if metric.converged_ and not late else 1


def _rehearsed_by(metric):
    """Return what fits a metric to some of the data: ``work(data, callback)``."""

    def work(some, seen):
        metric.set_params(callback=seen)
        metric.fit(*([some.X, some.y] if some.rows is None else [some.rows]))

    return work


def _fit(metric, learned, folder, clock):
    """Fit a metric within the time that is left; folder: of its checkpoint, None where it keeps none."""
    asked = {"max_seconds": metric.max_seconds}
    if folder is not None:
        metric.set_params(checkpoint=folder)
    with progress("fit") as seen:
        metric.set_params(callback=seen, max_seconds=clock.left())
        metric.fit(*([learned.X, learned.y] if learned.rows is None else [learned.rows]))
    clock.refuse_nothing([metric.components_], metric.solution_.stopped_by)
    if learned.rows is not None:
        asked["preprocessor"] = None  # the points are the user's, a model is without them
    metric.set_params(**asked)


def _starts(words, scaling, feature_names, cone):
    """Return the metrics to begin with: one, or the candidates of a cross-validation."""
    for name, some in words.items():
        if some is not None:
            return [read_start(word, name, scaling, feature_names, cone) for word in some]
    return [None, "identity", "within"]


def _word(metric, start, words):
    """Return what a start was called on the command line: a file by its name."""
    given = words["prior"] or words["candidates"]
    if given is None or not hasattr(metric, "chosen_"):
        return start if given is None or start == "none" else given[0]
    return dict(zip(metric.candidates_["name"][1:], given, strict=True)).get(start, start)


def _folds_left_out(metric):
    """Return, in words, the paths of folds that time did not allow."""
    import numpy as np

    told = metric.candidates_
    walked = np.arange(told["scores"].shape[1]) < np.where(told["dropped"], told["dropped"], np.inf)[:, None]
    missing = int((np.isnan(told["scores"]).all(axis=2) & walked)[1:].sum())
    return [f"{missing} paths of folds"] if missing else []


def make_model(scaling, metric):
    """Return what ``triscreen fit`` saves: scaling and metric, one after the other."""
    from sklearn.pipeline import Pipeline

    return Pipeline([("scale", scaling), ("metric", metric)])


def _check_output(output, dry_run):
    if output is None and not dry_run:
        raise InputError("output is not given: say where to write with --output FILE, or -o FILE")


def _folder(checkpoint, output):
    """Return the folder to go on from: the one that was named, or OUTPUT.checkpoint."""
    if checkpoint is not None or output is None:
        return checkpoint
    return Path(f"{output}.checkpoint")


def _out_of_time(path, max_seconds, left_out=()):
    """Say what there was no time for, and tell whether there was anything."""
    cut = path is not None and path.stopped_by == "max_seconds"  # None: a start was chosen that needs none
    missing = [f"lambdas after the {len(path)} done"] if cut else []
    missing += left_out
    if missing:
        say(
            f"stopped by max_seconds={max_seconds:g}, without {', '.join(missing)}; the same command goes on from there"
        )
    return bool(missing)
