"""Build the C extension. It is optional: installation succeeds without a C compiler. All other settings are in pyproject.toml."""

import sys

import numpy as np
from setuptools import Extension, setup

SOURCES = [
    "module.c",
    "interpreter.c",
    "kernels.c",
    "pool.c",
    "lowlevel.c",
    "parallel_ufunc.c",
    "guards.c",
    "frame_tracing.c",
    "loop_executor.c",
    "lu_cache.c",
    "eager_kernels.c",
    "tape.c",
    "primitive.c",
    "dispatch_cache.c",
    "index.c",
    "operation.c",
    "inplace.c",
    "structural.c",
    "sweep.c",
    "trace.c",
    "templates.c",
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
