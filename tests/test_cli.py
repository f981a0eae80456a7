"""What a person at a terminal sees: results, one-line errors, exit codes, and never a private value."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

import pemeans
import pemeans.rows.files
from pemeans.cli import app
from pemeans.report.tables import centers_table, plain_console

SECRET = "91827364"
BOUNDS = ["--bounds", "age=0:120", "--bounds", "bmi=10:60"]
FIT = ["fit", "patients.csv", "-k", "3", *BOUNDS, "--out", "model.json"]
CENTERS = np.array([[25.0, 20.0], [50.0, 30.0], [80.0, 40.0]])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a table of 900 patients, one column of text among its columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rows = np.repeat(CENTERS, 300, axis=0) + np.random.default_rng(1).normal(size=(900, 2))
    rows = np.random.default_rng(2).permutation(rows)
    table = pa.table({"sex": ["f", "m"] * 450, "age": rows[:, 0], "bmi": rows[:, 1]})
    pyarrow.csv.write_csv(table, "patients.csv")
    pyarrow.parquet.write_table(table, "patients.parquet")
    pyarrow.feather.write_feather(table, "patients.feather")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def run_well(*arguments: str) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def run_badly(*arguments: str) -> str:
    """The error of a command that must end with code 1, one line and nothing else."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ").strip()


def in_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pemeans.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


# --- What works --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["patients.csv", "patients.parquet", "patients.feather"])
def test_fit_reads_every_format(data: str) -> None:
    seeded = run("fit", data, "-k", "3", "--epsilon", "20", "--seed", "1", *BOUNDS, "--out", "model.json")
    assert seeded.exit_code == 0
    model = pemeans.load("model.json")
    assert list(model.feature_names_in_) == ["age", "bmi"]
    assert model.receipt_.n_rows == 900
    np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0), CENTERS, atol=6)


def test_fit_says_what_it_found_and_where() -> None:
    text = run_well(*FIT)
    assert "DPKMeans: 900 rows in 3 clusters, by 2 columns. Sizes are noisy." in text
    assert "cluster" in text
    assert "age" in text
    assert "spent epsilon 0.99" in text
    assert "operating system" in text
    assert "Wrote model.json" in text
    assert not pemeans.load("model.json").receipt_.seeded


def test_quiet_says_nothing() -> None:
    assert run_well(*FIT, "--quiet") == ""
    assert run_well("predict", "model.json", "patients.csv", "--out", "labels.csv", "-q") == ""


def test_options_reach_the_fit() -> None:
    run_well(*FIT, "--epsilon", "2", "--delta", "0.001", "--n-samples", "1000", "--threads", "1", "--scale")
    model = pemeans.load("model.json")
    assert (model.epsilon, model.receipt_.delta, model.receipt_.n_rows) == (2.0, 0.001, 1000)
    assert model.domain_.scale
    assert str(model.domain_).startswith("box of 2 features: [0, 120], [10, 60]")


def test_radius_makes_a_ball_of_the_chosen_columns() -> None:
    run_well("fit", "patients.csv", "-k", "2", "--radius", "130", "--columns", "bmi,age", "-o", "model.json")
    model = pemeans.load("model.json")
    assert list(model.feature_names_in_) == ["bmi", "age"]
    assert str(model.domain_) == "ball of radius 130 around 0"


def test_command_line_overrides_the_bounds_file() -> None:
    Path("bounds.toml").write_text("scale = true\n[bounds]\nage = [0, 150]\nbmi = [5, 70.5]\n")
    arguments = ["fit", "patients.csv", "-k", "2", "--bounds-file", "bounds.toml", "-o", "model.json"]
    run_well(*arguments)
    assert "[0, 150], [5, 70.5], each measured in its half-width" in str(pemeans.load("model.json").domain_)
    run_well(*arguments, "--bounds", "age=10:90", "--no-scale")
    assert str(pemeans.load("model.json").domain_) == "box of 2 features: [10, 90], [5, 70.5]"


@pytest.mark.parametrize(
    ("columns", "extra", "expected"),
    [
        (3, [], "DPKMeans"),
        (17, [], "DPKMeans"),
        (17, ["--method", "pe"], "PEMeans"),
        (3, ["--method", "hdpe"], "HDPEMeans"),
    ],
)
def test_method_follows_the_number_of_columns(columns: int, extra: list[str], expected: str) -> None:
    rows = np.random.default_rng(0).random((60, columns))
    pyarrow.parquet.write_table(pa.table({f"x{j}": rows[:, j] for j in range(columns)}), "wide.parquet")
    run_well("fit", "wide.parquet", "-k", "2", "--radius", "5", "-o", "model.json", *extra)
    assert type(pemeans.load("model.json")).__name__ == expected


def test_a_seed_reproduces_and_warns() -> None:
    models = []
    for _ in range(2):
        result = run(*FIT, "--seed", "7")
        assert result.exit_code == 0
        assert result.stderr.startswith("Warning: --seed is set")
        assert "NOT private" in result.stderr
        assert result.stderr.count("\n") == 1
        models.append(Path("model.json").read_text())
    assert models[0] == models[1]
    run_well(*FIT)
    assert Path("model.json").read_text() != models[0]


def test_bounds_from_data_warns() -> None:
    result = run(
        "fit", "patients.csv", "--columns", "age,bmi", "--bounds-from-data", "-k", "2", "-o", "m.json"
    )
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: the bounds were read from the private rows")
    assert result.stderr.count("\n") == 1
    assert pemeans.load("m.json").domain_.from_data


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet", "labels.feather", "LABELS.CSV"])
def test_predict_keeps_the_order_of_the_rows(name: str) -> None:
    run_well(*FIT, "--epsilon", "20")
    text = run_well("predict", "model.json", "patients.parquet", "--out", name)
    assert "as private as the rows" in text
    suffix = Path(name).suffix.lower()
    readers = {".csv": pyarrow.csv.read_csv, ".feather": pyarrow.feather.read_table}
    labels = readers.get(suffix, pyarrow.parquet.read_table)(name)
    assert labels.column_names == ["cluster"]
    rows = pyarrow.csv.read_csv("patients.csv").select(["age", "bmi"])
    expected = pemeans.load("model.json").predict(rows)
    assert len(set(expected)) > 1
    np.testing.assert_array_equal(labels["cluster"].to_numpy(), expected)


def test_predict_finds_columns_by_name() -> None:
    run_well(*FIT)
    table = pyarrow.parquet.read_table("patients.parquet")
    pyarrow.parquet.write_table(table.select(["bmi", "sex", "age"]), "turned.parquet")
    run_well("predict", "model.json", "patients.csv", "-o", "a.csv")
    run_well("predict", "model.json", "turned.parquet", "-o", "b.csv")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


def parts_of_patients() -> None:
    """The same rows in a folder of three files."""
    table = pyarrow.parquet.read_table("patients.parquet")
    Path("parts").mkdir()
    for i in range(3):
        pyarrow.parquet.write_table(table[300 * i : 300 * (i + 1)], f"parts/{i}.parquet", row_group_size=70)


@pytest.mark.parametrize("data", ["parts", "parts/", "parts/*.parquet"])
def test_a_folder_or_a_pattern_gives_what_one_file_gives(data: str) -> None:
    parts_of_patients()
    for source, out in (("patients.csv", "one.json"), (data, "many.json")):
        run("fit", source, "-k", "3", *BOUNDS, "--seed", "1", "--out", out)
    assert Path("one.json").read_bytes() == Path("many.json").read_bytes()
    for source, out in (("patients.feather", "one.csv"), (data, "many.csv")):
        assert "Wrote 900 labels" in run_well("predict", "one.json", source, "--out", out)
    assert Path("one.csv").read_bytes() == Path("many.csv").read_bytes()


def test_labels_never_overwrite_one_of_many_files() -> None:
    parts_of_patients()
    run_well(*FIT)
    message = run_badly("predict", "model.json", "parts/*.parquet", "--out", "parts/1.parquet")
    assert "would overwrite what is read" in message


def test_predict_with_a_model_without_names() -> None:
    rows = pyarrow.csv.read_csv("patients.csv").select(["age", "bmi"])
    array = np.column_stack([column.to_numpy() for column in rows.columns])
    pemeans.PEMeans(2, domain=pemeans.Domain.box(0, 120)).fit(array).save("model.json")
    assert "2 columns without names, but patients.csv has 3" in _columns_differ()
    pyarrow.csv.write_csv(rows, "two.csv")
    run_well("predict", "model.json", "two.csv", "--out", "labels.csv")
    assert "x1" in run_well("inspect", "model.json")


def _columns_differ() -> str:
    table = pyarrow.csv.read_csv("patients.csv")
    pyarrow.csv.write_csv(table.set_column(0, "sex", pa.array([0.0] * 900)), "patients.csv")
    return run_badly("predict", "model.json", "patients.csv", "--out", "labels.csv")


@pytest.mark.parametrize("magnitude", range(-6, 12))
def test_a_table_shows_whole_columns_only(magnitude: int, capsys: pytest.CaptureFixture[str]) -> None:
    centers, names = np.full((2, 40), -(10.0**magnitude)), [f"x{j}" for j in range(40)]
    plain_console().print(centers_table(centers, np.array([1, 1_000_000]), names))
    head, _, *lines, rest = capsys.readouterr().out.splitlines()
    shown = 40 - int(rest.split()[1])
    assert head.split() == ["cluster", "size", *names[:shown]]
    assert [len(line.split()) for line in lines] == [2 + shown] * 2
    assert max(map(len, [head, *lines])) <= 80


def test_inspect_shows_centers_and_receipt_in_80_columns() -> None:
    names = [f"a rather long name of column {j}" for j in range(40)]
    rows = np.random.default_rng(0).random((100, 40))
    pyarrow.feather.write_feather(pa.table(dict(zip(names, rows.T, strict=True))), "wide.feather")
    run_well("fit", "wide.feather", "-k", "3", "--radius", "7", "-o", "model.json")
    text = run_well("inspect", "model.json")
    assert max(map(len, text.splitlines())) <= 80
    assert "NearestVotes" in text
    assert "Neighbors: " in text


def test_a_narrow_terminal_shows_all_numbers_of_the_receipt() -> None:
    run_well("fit", "patients.csv", "-k", "2", *BOUNDS, "-o", "model.json")
    receipt = pemeans.load("model.json").receipt_
    shown = CliRunner().invoke(app, ["inspect", "model.json"], env={"COLUMNS": "60"}).stdout.split()
    assert {number for line in receipt.table()[1:] for number in line[2:]} <= set(shown)


def test_inspect_prints_names_as_they_are() -> None:
    pyarrow.csv.write_csv(
        pa.table({"[red]age[/red]": [1.0, 2.0, 3.0], "a\x1b[31m": [1.0, 2.0, 3.0]}), "m.csv"
    )
    run_well("fit", "m.csv", "-k", "1", "--radius", "7", "-o", "model.json")
    text = run_well("inspect", "model.json")
    assert "[red]age[/red]" in text
    assert "\x1b" not in text


def test_inspect_json_is_for_machines() -> None:
    run_well(*FIT)
    model, document = pemeans.load("model.json"), json.loads(run_well("inspect", "--json", "model.json"))
    assert document["method"] == "DPKMeans"
    assert document["feature_names"] == ["age", "bmi"]
    assert document["cluster_centers"] == model.cluster_centers_.tolist()
    assert document["cluster_sizes"] == model.cluster_sizes_.tolist()
    assert document["receipt"]["epsilon"] == 1.0


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "pemeans", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"pemeans {pemeans.__version__}\n"


def test_version_and_help() -> None:
    assert run_well("--version") == f"pemeans {pemeans.__version__}\n"
    for command in ("fit", "predict", "inspect", "demo"):
        assert command in run_well("--help")
        assert "Usage: " in run_well(command, "--help")


# --- What does not work ------------------------------------------------------------------------------------

BAD_OPTIONS = [
    ([], "no bounds: say where each column can lie"),
    (["--bounds", "age"], "--bounds 'age' is not NAME=LOW:HIGH"),
    (["--bounds", "age=0-120"], "is not NAME=LOW:HIGH"),
    (["--bounds", "age=a:b"], "is not NAME=LOW:HIGH"),
    (["--bounds", "=0:120"], "names no column"),
    (["--bounds", "age=120:0"], "the bounds of 'age' are upside down: 120 is above 0"),
    (["--bounds", "age=3:3"], "the bounds of 'age' leave no room"),
    (["--bounds", "age=0:inf"], "are not finite"),
    (["--bounds", "age=nan:1"], "are not finite"),
    (["--bounds", "age=0:120", "--bounds", "age=0:100"], "gives column 'age' twice"),
    (["--bounds", "Age=0:120"], "patients.csv has no column 'Age'; did you mean 'age'?"),
    (["--bounds", "agee=0:120"], "did you mean 'age'?"),
    (["--bounds", " AGE =0:120"], "has no column ' AGE '; did you mean 'age'?"),
    (["--bounds", "weight=0:120"], "its columns are 'sex', 'age', 'bmi'"),
    (["--bounds", "sex=0:1"], "column 'sex' of patients.csv does not hold numbers only"),
    (["--bounds", "age=0:120", "--columns", "age,bmi"], "add --bounds bmi=LOW:HIGH"),
    (["--bounds", "age=0:120", "--columns", "age,,"], "empty or repeated name"),
    (["--bounds", "age=0:120", "--radius", "3"], "exclude one another"),
    (["--bounds", "age=0:120", "--bounds-from-data"], "exclude one another"),
    (["--radius", "3", "--scale"], "--scale measures columns by their bounds"),
    (["--radius", "0", "--columns", "age"], "radius=0"),
    (["--radius", "3"], "column 'sex' of patients.csv does not hold numbers only"),
    ([*BOUNDS, "--epsilon", "0"], "epsilon=0"),
    ([*BOUNDS, "--epsilon", "nan"], "epsilon=nan"),
    ([*BOUNDS, "--delta", "1"], "delta=1"),
    ([*BOUNDS, "-k", "901"], "n_clusters=901"),
    (["--bounds-file", "nowhere.toml"], "nowhere.toml can't be read"),
    (["--bounds-file", "patients.parquet"], "patients.parquet is not TOML"),
]


@pytest.mark.parametrize(("options", "expected"), BAD_OPTIONS)
def test_bad_options(options: list[str], expected: str) -> None:
    assert expected in run_badly("fit", "patients.csv", *options, "--out", "model.json")
    assert not Path("model.json").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no bounds"),
        ("age = [0, 120]\n", "'age' means nothing here"),
        ("[bounds\n", "is not TOML"),
        ("[bounds]\nage = [0, 1]\nage = [0, 1]\n", "is not TOML"),
        ("[bounds]\nage = 120\n", "the bounds of 'age' are not two numbers"),
        ("[bounds]\nage = [0, true]\n", "are not two numbers"),
        (f"[bounds]\nage = [0, 1{'0' * 400}]\n", "the bounds of 'age', 0 and inf, are not finite"),
        (f"[bounds]\nage = [0, 1{'0' * 5000}]\n", "is not TOML that can be read"),
        (f"[bounds]\nage = {'[' * 2000}", "is not TOML that can be read"),
        ("[bounds]\nage = [120, 0]\n", "upside down"),
        ("scale = 1\n[bounds]\nage = [0, 120]\n", "scale = 1 is neither true nor false"),
    ],
)
def test_bad_bounds_file(text: str, expected: str) -> None:
    Path("bounds.toml").write_text(text)
    message = run_badly("fit", "patients.csv", "--bounds-file", "bounds.toml", "--out", "model.json")
    assert expected in message


BAD_FILES = [
    ("empty.csv", b"", "is empty"),
    ("blank.csv", b"\n\n\n", "is damaged or not a CSV file"),
    ("header.csv", b"age,bmi\n", "has columns but no rows"),
    ("ragged.csv", f"age,bmi\n1,2\n{SECRET}\n".encode(), "more or fewer fields"),
    ("quote.csv", f'age,bmi\n"{SECRET},2\n'.encode(), "open quotes"),
    ("utf16.csv", f"age,bmi\n{SECRET},2\n".encode("utf-16"), "is damaged or not a CSV file"),
    ("binary.csv", bytes(range(256)) * 9, "is damaged or not a CSV file"),
    ("semicolon.csv", f"age;bmi\n{SECRET};2\n".encode(), "separated by ';'"),
    ("headless.csv", f"{SECRET},22.5\n50,30\n".encode(), "add a header line"),
    ("twice.csv", b"age,bmi,age\n1,2,3\n", "has 2 columns called 'age'"),
    ("text.csv", f"age,bmi\n1,2\n{SECRET}x,2\n".encode(), "'age' of text.csv does not hold numbers only"),
    ("missing.csv", f"age,bmi\n{SECRET},2\n,3\n".encode(), "'age' of missing.csv has missing or infinite"),
    ("nan.csv", f"age,bmi\n{SECRET},2\nNaN,3\n".encode(), "'age' of nan.csv has missing or infinite"),
    (
        "infinite.csv",
        f"age,bmi\n{SECRET},2\n2,inf\n".encode(),
        "'bmi' of infinite.csv has missing or infinite",
    ),
    ("void.csv", b"age,bmi\n,1\n,2\n", "'age' of void.csv has missing or infinite"),
    ("date.csv", b"age,bmi\n2020-01-01,1\n", "does not hold numbers only"),
    ("junk.parquet", b"PAR1" + bytes(99), "is damaged or not a Parquet file"),
    ("junk.feather", b"ARROW1" + bytes(99), "is damaged or not a Feather file"),
    ("table.xlsx", b"PK", "unknown extension '.xlsx'; use a file that ends in .csv, .parquet, .feather"),
    ("table", b"PK", "has no extension"),
]


@pytest.mark.parametrize(("name", "content", "expected"), BAD_FILES)
def test_bad_files(name: str, content: bytes, expected: str) -> None:
    Path(name).write_bytes(content)
    message = run_badly("fit", name, "-k", "1", *BOUNDS, "--out", "model.json")
    assert expected in message
    assert SECRET not in message
    assert not Path("model.json").exists()


def test_a_headless_file_never_lends_its_values_as_names() -> None:
    Path("rows.csv").write_text(f"{SECRET},22.5\n50,30\n61,31\n")
    message = run_badly("fit", "rows.csv", "-k", "1", "--radius", "200", "--out", "model.json")
    assert "data in place of column names" in message
    assert SECRET not in message


def test_a_headless_file_never_lends_them_as_a_hint() -> None:
    Path("rows.csv").write_text("agnes,22.5\nbert,30\n")
    message = run_badly("fit", "rows.csv", "-k", "1", "--bounds", "ages=0:120", "--out", "model.json")
    assert "add a header line" in message
    assert "agnes" not in message


def test_a_whole_number_too_large_for_a_float_is_rounded() -> None:
    Path("ids.csv").write_text(f"age,bmi\n{2**53 + 1},20\n3,30\n")
    run_well("fit", "ids.csv", "-k", "1", *BOUNDS, "--out", "model.json")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("nowhere.csv", "nowhere.csv can't be read"), ("folder.csv", "has no file that ends in .parquet")],
)
def test_paths_that_are_no_files(path: str, expected: str) -> None:
    Path("folder.csv").mkdir()
    assert expected in run_badly("fit", path, *BOUNDS, "--out", "model.json")


@pytest.mark.parametrize(
    ("out", "expected"),
    [
        ("nowhere/model.json", "there is no folder nowhere"),
        (".", "is a folder"),
        ("patients.csv", "would overwrite what is read"),
        ("../{}/patients.csv", "would overwrite what is read"),
    ],
)
def test_bad_targets_are_found_before_the_data_is_read(
    out: str, expected: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(pemeans.rows.files, "read_columns", never)
    before = Path("patients.csv").read_bytes()
    assert expected in run_badly("fit", "patients.csv", *BOUNDS, "--out", out.format(folder.name))
    assert Path("patients.csv").read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission() -> None:
    Path("locked").mkdir(mode=0o500)
    assert "no permission" in run_badly("fit", "patients.csv", *BOUNDS, "--out", "locked/model.json")


def test_predict_refuses_what_it_cannot_do() -> None:
    run_well(*FIT)
    assert "unknown extension '.txt'" in run_badly("predict", "model.json", "patients.csv", "-o", "l.txt")
    Path("other.csv").write_text("age,size\n1,2\n")
    assert "has no column 'bmi'" in run_badly("predict", "model.json", "other.csv", "-o", "l.csv")
    assert "would overwrite" in run_badly("predict", "model.json", "other.csv", "-o", "other.csv")
    assert "nowhere.json can't be read" in run_badly("predict", "nowhere.json", "other.csv", "-o", "l.csv")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text.replace('"epsilon": 1.0', '"epsilon": 0.1', 1), "checksum"),
        (lambda text: text[:500], "not JSON"),
        (lambda _: "{}", "not a pemeans model file"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "upgrade pemeans"),
    ],
)
def test_damaged_models(change: Any, expected: str) -> None:
    run_well(*FIT)
    Path("model.json").write_text(change(Path("model.json").read_text()))
    assert expected in run_badly("inspect", "model.json")
    assert expected in run_badly("inspect", "--json", "model.json")
    assert expected in run_badly("predict", "model.json", "patients.csv", "-o", "labels.csv")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["fit"],
        ["fit", "patients.csv"],
        [*FIT, "--epsilon", "lots"],
        [*FIT, "-k", "0"],
        [*FIT, "--method", "magic"],
        [*FIT, "--nonsense"],
        ["predict", "model.json", "patients.csv"],
    ],
)
def test_usage_errors(arguments: Sequence[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert "Usage: " in result.stderr


def test_a_bug_tells_no_private_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(pemeans.rows.files, "read_columns", broken)
    message = run_badly(*FIT)
    assert message.startswith("RuntimeError at test_cli.py:")
    assert SECRET not in message


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
        (MemoryError(), 1, "Error: not enough memory; use fewer rows or columns\n"),
        (
            OSError(28, "No space left on device", "model.json"),
            1,
            "Error: model.json: No space left on device; check the path and the disk\n",
        ),
        (
            ModuleNotFoundError("No module named 'pooch.core'", name="pooch.core"),
            1,
            "Error: the package 'pooch' is missing, which only this command needs; pip install pooch\n",
        ),
    ],
)
def test_accidents(error: BaseException, code: int, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def accident(*_: Any) -> None:
        raise error

    monkeypatch.setattr(pemeans.rows.files, "read_columns", accident)
    result = run(*FIT)
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", expected)


# --- A program of its own ----------------------------------------------------------------------------------


def test_in_a_pipe_there_is_neither_progress_nor_color() -> None:
    done = in_process(*FIT, env={name: text for name, text in os.environ.items() if name != "FORCE_COLOR"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "Private evolution" not in done.stdout


def test_no_traceback_outside_either() -> None:
    Path("bad.csv").write_text(f"age,bmi\n1,2\n{SECRET}\n")
    done = in_process("fit", "bad.csv", *BOUNDS, "--out", "model.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: bad.csv is damaged")
    assert done.stderr.count("\n") == 1
    assert SECRET not in done.stderr


def test_on_a_terminal_there_is_a_bar_that_ctrl_c_ends() -> None:
    with Path("many.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "bmi"])
        writer.writerows(np.random.default_rng(0).uniform(10, 60, size=(30_000, 2)).tolist())
    terminal, end = pty.openpty()
    arguments = ["fit", "many.csv", "-k", "20", "--epsilon", "500", *BOUNDS, "--out", "model.json"]
    with subprocess.Popen(
        [sys.executable, "-c", "from pemeans.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=end,
        env=os.environ | {"TERM": "xterm"},
    ) as process:
        os.close(end)
        seen = b""
        while b"Private evolution" not in seen:
            seen += os.read(terminal, 1 << 12)
        process.send_signal(signal.SIGINT)
        seen += _rest_of(terminal)
        assert process.wait(timeout=60) == 130
    assert seen.endswith(b"Error: interrupted\r\n")
    assert b"Traceback" not in seen
    assert not Path("model.json").exists()


def _rest_of(terminal: int) -> bytes:
    """What a terminal still shows until its last user is gone, which Linux tells by an error."""
    rest = b""
    while True:
        try:
            rest += os.read(terminal, 1 << 12)
        except OSError:
            return rest
