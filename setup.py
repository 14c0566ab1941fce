"""The one thing that pyproject.toml cannot say: the extension, which is left out where it cannot be compiled."""

import sys

import numpy as np
from setuptools import Extension, setup

SOURCES = [
    "module.c",
    "code.c",
    "own.c",
    "pool.c",
    "lowlevel.c",
    "shared.c",
    "guards.c",
    "quiet.c",
    "rolled.c",
    "factors.c",
    "values.c",
    "tape.c",
    "row.c",
    "ways.c",
    "index.c",
    "operation.c",
    "inplace.c",
    "structure.c",
    "sweep.c",
    "trace.c",
    "passes.c",
]
UNIX = ["-std=c11", "-O3", "-fno-math-errno", "-fvisibility=hidden"]

loops = Extension(
    "chainrule._src.native._loops",
    sources=[f"chainrule/_src/native/{name}" for name in SOURCES],
    depends=[f"chainrule/_src/native/{name}.h" for name in ("loops", "runner", "eager", "trace")],
    include_dirs=[np.get_include()],
    extra_compile_args=["/O2"] if sys.platform == "win32" else [*UNIX, "-pthread"],
    extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
    optional=True,
)

setup(ext_modules=[loops])
