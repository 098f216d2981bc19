"""Damaged and odd files of every kind, through the commands that read them: one clear sentence each, or an answer.

    python tests/cli/fuzz_files.py [files] [seed]

`make nightly` tries 5,000 files, the test suite some; each finding can be had again by its seed and number. Most
mutations know the kind of the file: a cell of a table, a leaf of a header, an array of an archive whose checksums are
right again; others know bytes only.
"""

from __future__ import annotations

import io
import json
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from commands import invoke, make_files

SECONDS, BYTES = 20, 2e9
CELLS = ("", " ", "nan", "inf", "-inf", "1e999", "1e308", "1e-320", "0x10", "1_0", "1,5", "½", "x", '"', '""', '"x',
         "'", "=1+1", "#", "\\", "\t", "-", "--1", "+1", "1e", "9" * 400, "label", "a", "é", "\u2028", "\x1c", "\ufeff",
         "null", "None", "True", "1:2", "c1", "-0", "00", "1e70", "0", "1", "3", "\r")  # fmt: skip
LEAVES = (None, True, 0, -1, 1, 2**70, 1.5, "", "x", "nan", [], [1], ["x"], {}, {"x": 1}, {"$float": "nan"},
          {"$float": "x"}, 1e308, [[]], "psd", "diagonal", "standard")  # fmt: skip


# -- mutations -------------------------------------------------------------------------------------------------------


def of_bytes(rng, data):
    """Damage bytes: a few flipped, a slice lost, doubled, zeroed, or foreign."""
    data, n = bytearray(data), len(data)
    a, b = sorted(rng.integers(0, n + 1, 2))
    b = min(b, a + int(rng.choice([1, 4, 40, n])))
    what = rng.integers(6)
    if what == 0:
        for place in rng.integers(0, n, rng.integers(1, 9)):
            data[place] ^= 1 << rng.integers(8)
    elif what == 1:
        del data[a:b]
    elif what == 2:
        data[a:a] = data[a:b]
    elif what == 3:
        data[a:b] = bytes(b - a)
    elif what == 4:
        data[a:a] = rng.bytes(rng.integers(1, 30))
    else:
        del data[a:]
    return bytes(data)


def of_text(rng, data):
    """Damage a table: cells, lines, separators, encodings."""
    text = data.decode(errors="replace")
    sign = next((sign for sign in "\t;," if sign in text), " ")
    lines = text.split("\n")
    for _ in range(rng.integers(1, 4)):
        place = rng.integers(len(lines))
        cells = lines[place].split(sign)
        what = rng.integers(9)
        if what <= 3:
            cells[rng.integers(len(cells))] = str(rng.choice(CELLS))
            lines[place] = sign.join(cells)
        elif what == 4:
            lines[place] = sign.join([*cells, *cells][: rng.integers(0, 2 * len(cells))])
        elif what == 5:
            lines[place : place + 1] = [lines[place]] * int(rng.integers(0, 3))
        elif what == 6:
            lines.insert(place, str(rng.choice(["", "  ", sign * 3, "#", '"', "\x00", "a,b,c", "x" * 200_000])))
        elif what == 7:
            column, cell = rng.integers(len(cells)), str(rng.choice(CELLS))
            for number, line in enumerate(lines[1:-1], 1):
                cells = line.split(sign)
                lines[number] = sign.join(cell if c == column else old for c, old in enumerate(cells))
        else:
            lines = lines[: rng.integers(0, 4)]
            if not lines:
                lines = [""]
    text = str(rng.choice(["\n", "\n", "\n", "\r\n", "\r", "\n\n"])).join(lines)
    if rng.random() < 0.1:
        text = text.replace(sign, str(rng.choice([";", "\t", " ", ",", "|"])))
    return text.encode(str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-8"])), "replace")


def an_array(rng, like=None):
    """Return an odd array, often of the shape of another."""
    shape = [(), (0,), (3,), (15,), (0, 5), (5, 0), (15, 2), (15, 1), (2, 15), (2, 2, 2), (1, 1)][rng.integers(11)]
    if like is not None and rng.random() < 0.6:
        shape = like.shape
    kind = rng.integers(10)
    if like is not None and kind < 4 and like.size:
        made = like.copy()
        if made.dtype.kind in "fiu":
            odd = [0, -1, 1, 100, *([np.nan, np.inf, 1e308, 1e-310, -1e30] if made.dtype.kind == "f" else [])]
            made.flat[rng.integers(made.size)] = np.array(odd[rng.integers(len(odd))]).astype(made.dtype)
        with np.errstate(over="ignore"):
            return made if kind < 3 else made.astype([np.float32, ">f8", "c16", "U9"][rng.integers(4)])
    dtype = ["f8", "i8", "U4", "b1", "c16", "M8[D]", "f2", "S3", "u8", "O"][kind]
    if dtype == "O":
        return np.full(shape, None, dtype=object)
    return np.full(shape, 1).astype(dtype) if rng.random() < 0.5 else np.zeros(shape, dtype=dtype)


def as_npy(array):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def of_npy(rng, data):
    """Write another array, or tell lies in the header."""
    if rng.random() < 0.5:
        return as_npy(an_array(rng, np.load(io.BytesIO(data))))
    old, new = [(b"15, 3", b"99, 3"), (b"15, 3", b"15,-3"), (b"<f8", b"<i4"), (b"<f8", b"|O "), (b"<f8", b"|V8"),
                (b"False", b"True "), (b"(15, 3)", b"(9**9,)"), (b"descr", b"shape")][rng.integers(8)]  # fmt: skip
    return data.replace(old, new, 1)


def of_leaf(rng, value):
    """Change, lose or add something somewhere in a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.15:
            return {name: item for name, item in value.items() if name != key}
        if rng.random() < 0.1:
            return {("x" + name if name == key else name): item for name, item in value.items()}
        return {**value, key: of_leaf(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.integers(len(value))
        if rng.random() < 0.3:
            return value[:place] + value[place + 1 :] if rng.random() < 0.5 else [*value, value[place]]
        return [of_leaf(rng, item) if number == place else item for number, item in enumerate(value)]
    return LEAVES[rng.integers(len(LEAVES))]


def of_zip(rng, data):
    """Change one member of an archive: its checksum is right, and the header says what the arrays are."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    what, name = rng.integers(7), list(members)[rng.integers(len(members))]
    if what <= 2 and "header.json" in members:
        header = json.loads(members["header.json"])
        part = "meta" if rng.random() < 0.8 else list(header)[rng.integers(len(header))]
        header[part] = of_leaf(rng, header[part])
        members["header.json"] = json.dumps(header).encode()
    elif what <= 4 and name.endswith(".npy"):
        array = an_array(rng, np.load(io.BytesIO(members[name])))
        members[name] = as_npy(array)
        if "header.json" in members:
            header = json.loads(members["header.json"])
            header["arrays"][name[:-4]] = {"dtype": array.dtype.str, "shape": array.shape}
            members["header.json"] = json.dumps(header).encode()
    elif what == 5:
        members[name] = of_bytes(rng, members[name])
    elif rng.random() < 0.5:
        del members[name]
    else:
        members["x" + name] = members[name]
    stream = io.BytesIO()
    packing = zipfile.ZIP_DEFLATED if rng.random() < 0.2 else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return stream.getvalue()


def of_parquet(rng, data):
    """Write a table with a column of another type, or with values missing."""
    import pyarrow as pa
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(data))
    n, place = len(table), int(rng.integers(table.num_columns))
    odd = [[None] * n, [True] * n, ["x"] * n, [b"x"] * n, [[1.0]] * n, [{"x": 1}] * n,
           [np.datetime64("2020-01-01")] * n, [float("nan")] * n, [float("inf")] * n, [2**62] * n, list(range(n)),
           [1.5, None] * n, []][rng.integers(13)]  # fmt: skip
    column = pa.array(odd[:n] if odd else [0] * n)
    if rng.random() < 0.2:
        column = column.dictionary_encode() if not pa.types.is_nested(column.type) else column
    name = table.column_names[int(rng.integers(table.num_columns))] if rng.random() < 0.2 else table.column_names[place]
    table = table.set_column(place, name, column) if odd else table.slice(0, int(rng.integers(2)))
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


# -- files and commands ----------------------------------------------------------------------------------------------


class Files:
    """Good files of every kind, and what reads them."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.given = make_files(self.folder)
        model = self.given["model"]
        points = self.given["data"].read_text(encoding="utf-8")
        rows = [line.split(",") for line in points.splitlines()[1:]]
        X, y = np.array([row[:2] for row in rows], dtype=float), np.array([int(row[2][1]) for row in rows])
        learn = ([("fit", "{}", "--lam-ratio", "0.1", "--tol", "1e-2", "-k", "2", "-o", "{out}")] * 2
                 + [("path", "{}", "--n-lambdas", "2", "--tol", "1e-2", "-k", "2", "-o", "{out}")]
                 + [("fit", "{}", "--cv", "2", "--tol", "1e-1", "-k", "2", "-o", "{out}")])  # fmt: skip
        use = [("transform", model, "{}"), ("evaluate", model, "{}"), ("fit", "{}", "--dry-run")]
        table = "\n".join(",".join(row[:3]) for row in rows)
        svm = "\n".join(f"{label} 1:{a!r} 2:{b!r}" for (a, b), label in zip(X.tolist(), y, strict=True))
        compared = ("--drop", "class", "--drop", "name", "--tol", "1e-2", "-o", "{out}")
        named = [f"n{a},n{b},n{c}" for a, b, c in (row.split(",") for row in
                 self.given["comparisons"].read_text().split())]  # fmt: skip
        # kind: (its bytes, mutations that know it, commands)
        self.kinds = {
            "csv": (f"a,b,class\n{table}\n".encode(), of_text, [*learn, *use]),
            "tsv": (table.replace(",", "\t").encode(), of_text, [*learn, *use]),
            "txt": (table.replace(",", " ").encode(), of_text, [*learn, *use]),
            "svm": (svm.encode(), of_text, [*learn, *use]),
            "npy": (as_npy(np.c_[X, y]), of_npy, [*learn, *use]),
            "npz": (_npz(X=X, y=y), of_zip, [*learn, *use]),
            "parquet": (_parquet(X, y), of_parquet, [*learn, *use]),
            "model": (model.read_bytes(), of_zip, [("info", "{}"), ("transform", "{}", self.given["data"]),
                                                   ("evaluate", "{}", self.given["data"], "--label", "class")]),
            "path": (self.given["file"].read_bytes(), of_zip, [("info", "{}"), ("report", "{}", "-o", "{out}")]),
            "numbers": (self.given["comparisons"].read_bytes(), of_text,
                        [("fit", self.given["data"], "--comparisons", "{}", *compared)]),
            "names": ("\n".join(["a,near,far", *named]).encode(), of_text,
                      [("fit", self.given["data"], "--comparisons", "{}", "--names", "name", "--drop", "class", "--tol",
                        "1e-2", "-o", "{out}")]),
        }  # fmt: skip
        self.entries = self._checkpoint()
        self.kinds["checkpoint"] = (b"", of_zip, [self.unfinished])

    def _checkpoint(self):
        """Leave a path unfinished; return its files."""
        from triscreen._utils.checkpoint import Checkpoint

        folder = self.folder / "kept"
        self.unfinished = ("path", self.given["data"], "--label", "class", "--drop", "name", "-k", "2", "--tol", "1e-2",
                           "--n-lambdas", "5", "-o", "{out}", "--checkpoint", "{}")  # fmt: skip
        append = Checkpoint.append

        def appended(store, *arguments, **more):
            if len(store) == 3:
                raise KeyboardInterrupt
            append(store, *arguments, **more)

        Checkpoint.append = appended
        try:
            done = invoke(*(str(word).format(folder, out=self.folder / "none") for word in self.unfinished))
        finally:
            Checkpoint.append = append
        assert done.code == 130, done
        return folder

    def put(self, rng, kind, folder):
        """Write a damaged file (or a folder of checkpoints with one); return its name and a command."""
        good, known, commands = self.kinds[kind]
        name = folder / f"fuzzed.{kind}"
        if kind == "checkpoint":
            shutil.copytree(self.entries, name)
            inside = sorted(file for file in name.iterdir() if file.suffix == ".tsc")
            file = inside[rng.integers(len(inside))]
            if rng.random() < 0.2:
                file.write_bytes(inside[rng.integers(len(inside))].read_bytes())
                return name, commands[0]
        else:
            file = name
            file.write_bytes(good)
        for _ in range(1 + int(rng.random() < 0.2)):
            mutate = known if rng.random() < 0.75 else of_bytes
            try:
                file.write_bytes(mutate(rng, file.read_bytes() or b" "))
            except Exception:  # what was damaged once cannot always be damaged again
                file.write_bytes(of_bytes(rng, file.read_bytes() or b" "))
        return name, commands[rng.integers(len(commands))]


def _npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _parquet(X, y):
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "class": y}), stream)
    return stream.getvalue()


@contextmanager
def _limit(seconds):
    def ring(*_):
        raise SystemExit(f"no answer after {seconds} s")

    old = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def wrong(done, name):
    """Return what is wrong with how a command ended, or None."""
    lines = done.err.splitlines()
    errors = [line for line in lines if line.startswith("triscreen: error: ")]
    if done.code not in (0, 1, 2):
        return f"it ended with {done.code!r}"
    if "Traceback" in done.err or "should not happen" in done.err:
        return "a traceback, or what should not happen"
    if len(errors) > 1 or (errors and errors[0] != lines[-1]):
        return "more than one sentence"
    named = errors and (name.name in errors[0] or (name.suffix == ".model" and "source=" in errors[0]))
    if errors and not named and "error: cv=" not in errors[0]:  # folds that these labels are too few for
        return "the sentence does not name the file"
    if bool(errors) != bool(done.code) and not (done.code == 1 and "warning" in done.err):
        return "an error without a sentence, or a sentence without an error"
    return None


def fuzz(files, count, seed=0, kinds=None, process_every=0, say=lambda text: None):
    """Try so many files; return (how they ended, what was wrong)."""
    kinds, ended, findings = list(kinds or files.kinds), Counter(), []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        kind = kinds[number % len(kinds)]
        with tempfile.TemporaryDirectory(dir=files.folder) as folder:
            name, command = files.put(rng, kind, Path(folder))
            words = [str(word).format(name, out=Path(folder) / "out") for word in command]
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if process_every and number % process_every == 0:
                words = [sys.executable, "-m", "triscreen", *words]
                done = subprocess.run(words, capture_output=True, text=True, timeout=100)
                done.code, done.err = done.returncode, done.stderr
            else:
                with _limit(SECONDS):
                    done = invoke(*words)
            grown = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            problem = wrong(done, name)
            if problem is None and grown > BYTES and 1024 * before < BYTES:
                problem = f"{grown:.2g} bytes"
        ended[kind, done.code] += 1
        if problem:
            findings.append((number, kind, problem, " ".join(words), done.err[-400:]))
            say(f"{number} {kind}: {problem}: {' '.join(words)}\n{done.err[-400:]}")
    return ended, findings


def main(count=5000, seed=0):
    """Try files of all kinds, and say how they ended."""
    with tempfile.TemporaryDirectory() as folder:
        ended, findings = fuzz(Files(folder), count, seed, process_every=100, say=print)
    for kind in dict.fromkeys(kind for kind, _ in ended):
        codes = {code: n for (k, code), n in sorted(ended.items(), key=str) if k == kind}
        print(f"{kind}: " + ", ".join(f"{n} ended with {code}" for code, n in codes.items()))
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{count} files, {len(findings)} findings, {peak:.2g} bytes at the most")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
