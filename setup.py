"""The C kernels; everything else about the package is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "pemeans.kernels._native",
            sources=["src/pemeans/kernels/_native.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-std=gnu11"],
            # Without a C compiler the NumPy kernels give the same integers, only slower.
            optional=True,
        ),
        Extension(
            "pemeans.kernels._rows",
            sources=["src/pemeans/kernels/_rows.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-ffp-contract=off", "-std=gnu11"],
            optional=True,
        ),
    ]
)
