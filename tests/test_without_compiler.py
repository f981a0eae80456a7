"""Without a C compiler the package installs and works, and releases the same numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pemeans.kernels.native import native, native_rows

ROOT = Path(__file__).parents[1]
WITHOUT_C = "import sys; sys.modules.update({'pemeans.kernels._native': None, 'pemeans.kernels._rows': None})"
FITS = """
import hashlib, warnings
import numpy as np
from pemeans import Domain, DPKMeans, HDPEMeans, PEMeans
from pemeans.kernels.native import native, native_rows
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
rows = rng.normal(rng.integers(-1, 2, size=(3001, 1)) * 2.0, 1.0, size=(3001, 18))
rows[100:140] = rows[7]
models = DPKMeans(5), PEMeans(5, n_iterations=2), HDPEMeans(5, n_iterations=3)
print("NumPy" if native is None and native_rows is None else "C")
for model in models:
    model.set_params(domain=Domain.box(-8, 8), random_state=3).fit(rows)
    released = model.cluster_centers_.tobytes() + model.cluster_sizes_.tobytes()
    print(hashlib.sha256(released).hexdigest())
"""


def printed(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(
    native is None or native_rows is None, reason="without a C compiler there is only the NumPy twin"
)
def test_fits_release_the_same_numbers_without_the_c_kernels() -> None:
    in_c, in_numpy = printed(FITS), printed(f"{WITHOUT_C}\n{FITS}")
    assert (in_c[0], in_numpy[0]) == ("C", "NumPy")
    assert len(in_c) == 4
    assert in_c[1:] == in_numpy[1:]


def test_the_build_goes_on_without_a_compiler(tmp_path: Path) -> None:
    """As an installation builds it, but for a compiler that always fails."""
    pytest.importorskip("setuptools", reason="the compiler is run through setuptools")
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copytree(ROOT / "native", tmp_path / "native")
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    broken = {**os.environ, "CC": "false", "LDSHARED": "false"}
    done = subprocess.run(command, cwd=tmp_path, env=broken, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "failed" in done.stderr
    assert not list(tmp_path.rglob("*.so"))
