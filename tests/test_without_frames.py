"""Arrays are fitted where no library of data frames is installed: in Python none is a hard dependency."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ABSENT = ("pandas", "polars", "pyarrow", "dask", "pyspark", "matplotlib", "typer", "rich")
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({ABSENT!r}))
import numpy as np
from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans, load
rows = np.random.default_rng(0).normal(size=(300, 18))
for method in (DPKMeans, PEMeans, HDPEMeans):
    model = method(2, domain=Domain.ball(9)).fit(rows)
    model.fit(rows.tolist()).save(sys.argv[1])
    assert (load(sys.argv[1]).predict(rows) == model.predict(rows)).all()
"""


def test_arrays_are_fitted_without_any_library_of_frames(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "model.json")], check=True)
