"""Build the C extension, and the parts of the metadata that depend on the repository's address (``tools/index_page.py``).

The extension is optional: installation succeeds without a C compiler. A wheel without it gets the tag ``py3-none-any``. All other
settings are in pyproject.toml.
"""

import re
import sys
from pathlib import Path

import numpy as np
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))
from tools.index_page import long_description, project_urls  # noqa: E402

VERSION = re.search(
    r'^__version__ = "(.+)"$', (ROOT / "chainrule/__init__.py").read_text(encoding="utf-8"), re.MULTILINE
)[1]

SOURCES = [
    "module.c",
    "interpreter.c",
    "kernels.c",
    "pool.c",
    "lowlevel.c",
    "guards.c",
    "frame_tracing.c",
    "loop_executor.c",
    "lu_cache.c",
    "matmul.c",
    "depthwise.c",
    "linear_algebra.c",
    "small_matrices.c",
    "aligned_arrays.c",
    "eager_kernels.c",
    "tape.c",
    "primitive.c",
    "levels.c",
    "dispatch_cache.c",
    "index.c",
    "operation.c",
    "inplace.c",
    "structural.c",
    "moments.c",
    "regions.c",
    "sweep.c",
    "trace.c",
    "templates.c",
    "traced_operations.c",
    "rows.c",
    "encoding.c",
    "call_list.c",
    "passes.c",
    "released_values.c",
]
UNIX = ["-std=c11", "-O3", "-fno-math-errno", "-fvisibility=hidden"]

loops = Extension(
    "chainrule._src.native._loops",
    sources=[f"chainrule/_src/native/{name}" for name in SOURCES],
    depends=[
        f"chainrule/_src/native/{name}.h"
        for name in ("loops", "runner", "eager", "trace", "rows", "encoding", "call_list")
    ],
    include_dirs=[np.get_include()],
    extra_compile_args=["/O2"] if sys.platform == "win32" else [*UNIX, "-pthread"],
    extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
    optional=True,
)


class Wheel(bdist_wheel):
    """A wheel that runs on any platform if the extension could not be built."""

    def run(self) -> None:
        self.run_command("build")
        build = self.get_finalized_command("build_ext")
        if not any(Path(build.get_ext_fullpath(extension.name)).exists() for extension in build.extensions):
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", "any") if self.root_is_pure else super().get_tag()


setup(
    ext_modules=[loops],
    cmdclass={"bdist_wheel": Wheel},
    long_description=long_description((ROOT / "README.md").read_text(encoding="utf-8"), VERSION),
    long_description_content_type="text/markdown",
    project_urls=project_urls(VERSION),
)
