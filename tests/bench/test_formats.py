from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pemeans.bench import formats
from pemeans.errors import DataError


def zipped(folder: Path, **files: str) -> Path:
    path = folder / "raw.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"some/folder/{name.replace('__', '-').replace('_dot_', '.')}", text)
    return path


def test_iris(tmp_path: Path) -> None:
    path = zipped(tmp_path, iris_dot_data="5.1,3.5,1.4,0.2,Iris-setosa\n6.0,3.0,4.8,1.8,Iris-virginica\n\n")
    X, y = formats.read_iris(path)
    assert X.tolist() == [[5.1, 3.5, 1.4, 0.2], [6.0, 3.0, 4.8, 1.8]]
    assert y is not None
    assert y.tolist() == [0, 1]


def test_letter_codes_letters_in_alphabetical_order(tmp_path: Path) -> None:
    numbers = ",".join(map(str, range(16)))
    path = zipped(tmp_path, letter__recognition_dot_data=f"T,{numbers}\nA,{numbers}\nT,{numbers}\n")
    X, y = formats.read_letter(path)
    assert X.shape == (3, 16)
    assert y is not None
    assert y.tolist() == [1, 0, 1]


def test_adult_takes_the_numeric_columns_of_both_files(tmp_path: Path) -> None:
    line = (
        "{age}, State-gov, 77516, Bachelors, 13, Single, Clerical, None, White, Male, 2174, 5, 40, US, <=50K"
    )
    train, test = line.format(age=39), line.format(age=25) + "."
    path = zipped(
        tmp_path, adult_dot_data=train + "\n\n", adult_dot_test="|1x3 Cross validator\n" + test + "\n"
    )
    X, y = formats.read_adult(path)
    assert X.tolist() == [[39, 77516, 13, 2174, 5, 40], [25, 77516, 13, 2174, 5, 40]]
    assert y is None


def test_gas_puts_the_year_first_and_rounds(tmp_path: Path) -> None:
    head = "AT,AP,AH,AFDP,GTEP,TIT,TAT,TEY,CDP,CO,NOX\n"
    files = {
        f"gt_{year}_dot_csv": head + f"{year / 1e5},1,2,3,4,5,6,7,8,9,10\n" for year in range(2011, 2016)
    }
    X, _ = formats.read_gas(zipped(tmp_path, **files))
    assert X.shape == (5, 12)
    assert X[0].tolist() == [2011, 0.0201, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_g2_halves_are_the_clusters(tmp_path: Path) -> None:
    path = zipped(
        tmp_path, **{"g2__4__50_dot_txt": "  1  2  3  4\n  5  6  7  8\n", "g2__4__10_dot_txt": "9 9 9 9\n"}
    )
    X, y = formats.read_g2(path, dimensions=4)
    assert X.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert y is not None
    assert y.tolist() == [0, 1]


def test_birch2_is_read_from_a_tar_archive(tmp_path: Path) -> None:
    path = tmp_path / "real.tar.xz"
    content = b"x1 x2\n 90603 80735\n 416272 31568\n"
    with tarfile.open(path, "w:xz") as tar:
        entry = tarfile.TarInfo("birch2.txt")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    X, y = formats.read_birch2(path)
    assert X.tolist() == [[90603, 80735], [416272, 31568]]
    assert y is None


def test_damaged_archives_and_numbers_are_told(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(b"<html>moved</html>")
    with pytest.raises(DataError, match=r"bad\.zip is not an archive"):
        formats.read_iris(tmp_path / "bad.zip")
    with pytest.raises(DataError, match="not a number"):
        formats.read_iris(zipped(tmp_path, iris_dot_data="5.1,huh,1.4,0.2,Iris-setosa\n"))
