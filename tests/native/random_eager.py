"""Random programs in the C fast path and in Python, in this process: ``python -m tests.native.random_eager 400``."""

from __future__ import annotations

import sys

from tests.fuzz import judging, making, native


def main(count: int, first: int = 0) -> int:
    judging.quiet()
    for seed in range(first, first + count):
        program = native.program(seed)
        failure = native.against_python(program).failure
        if failure:
            print(f"{seed}: {failure.what}\n{making.text_of(program)}")
            return 1
    print(f"{count} programs leave the same in C and in Python")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
