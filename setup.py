"""The C kernels; everything else about the package is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("native")
ROWS = {NATIVE / "rows.c", NATIVE / "residuals.c"}
HEADERS = sorted(map(str, NATIVE.glob("*.h")))
FLAGS = ["-O3", "-fno-math-errno", "-std=gnu11"]

# optional: without a C compiler the NumPy kernels give the same integers, only slower.
setup(
    ext_modules=[
        Extension(
            "pemeans.kernels._native",
            sources=sorted(map(str, set(NATIVE.glob("*.c")) - ROWS)),
            depends=HEADERS,
            extra_compile_args=FLAGS,
            optional=True,
        ),
        Extension(
            "pemeans.kernels._rows",
            sources=sorted(map(str, ROWS)),
            depends=HEADERS,
            extra_compile_args=[*FLAGS, "-ffp-contract=off"],
            optional=True,
        ),
    ]
)
