"""Run the extension's tests and fuzz tests under the address and undefined-behaviour sanitizers.

python tools/sanitize.py [NUMBER OF PROGRAMS]

A copy of the package is built with the sanitizers in build/sanitize. NumPy's loops are not compiled with them, so the fuzz
test of plans places every array and arena in front of a protected memory page (tools/fence.c).

The setuptools of build/backend, which ``make sanitize`` installs, runs setup.py: the environment's own may be too old.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "sanitize"
BACKEND = ROOT / "build" / "backend"
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
LIBRARIES = ["libasan.so", "libubsan.so"]


def build(python: str) -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    for name in ("chainrule", "tests", "tools"):
        shutil.copytree(ROOT / name, COPY / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, COPY)
    command = [python, "setup.py", "--quiet", "build_ext", "--inplace"]
    env = {**os.environ, "CFLAGS": FLAGS, "LDFLAGS": FLAGS, "PYTHONPATH": str(BACKEND)}
    subprocess.run(command, cwd=COPY, env=env, check=True)
    includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    target = COPY / f"fence{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O1", "-fPIC", "-shared", *includes, ROOT / "tools" / "fence.c", "-o", target], check=True
    )


def library(name: str) -> str:
    return subprocess.check_output([os.environ.get("CC", "cc"), f"-print-file-name={name}"], text=True).strip()


def main(count: str = "400") -> int:
    build(sys.executable)
    env = {
        **os.environ,
        "LD_PRELOAD": " ".join([*map(library, LIBRARIES), library("libstdc++.so.6")]),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # Python's own allocator hides the use of freed objects
        "PYTHONPATH": str(COPY),
    }
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/native",
        "tests/compiling/test_loops.py",
        "tests/compiling/test_trace_in_c.py",
        "tests/compiling/test_packed_calls.py",
        "tests/compiling/test_released_values.py",
        "tests/compiling/test_repeated_reads.py",
        "tests/linalg/test_small_matrices.py",
        "tests/nn/test_depthwise.py",
    ]
    plans = [sys.executable, "-m", "tests.native.random_programs", count]
    eager = [sys.executable, "-m", "tests.native.random_eager", count]
    for command in (plans, eager, tests):
        print("+", *command[1:], flush=True)
        code = subprocess.run(command, cwd=COPY, env=env).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
