"""The C kernels; everything else about the package is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("native")

setup(
    ext_modules=[
        Extension(
            "pemeans.kernels._native",
            sources=sorted(map(str, NATIVE.glob("*.c"))),
            depends=sorted(map(str, NATIVE.glob("*.h"))),
            extra_compile_args=["-O3", "-fno-math-errno", "-std=gnu11"],
            # Without a C compiler the NumPy kernels give the same integers, only slower.
            optional=True,
        )
    ]
)
