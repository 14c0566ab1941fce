"""Run many programs with ``python -m tests.fuzz torch -n 1000``, or one by its seed with ``--seed 7 -n 1``.

The programs run in a worker process with limited memory, which is replaced after some hundred programs, and when it dies
or hangs. A failure is printed once, shrunk; others with the same signature are counted.
"""

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from typing import Any, NamedTuple

MODES = ("torch", "plain", "numpy", "objects", "compile", "pairs", "algebra", "state", "dask", "native")
BATCH = 400
SECONDS = 8
BYTES = 6 << 30  # of address space; PyTorch alone takes two


def worker(mode: str, first: int, count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    from . import judging, making, modes

    judging.quiet()
    make, judge = modes.MODES[mode]()
    gc.freeze()  # compilation collects garbage, which should only scan the objects of the program
    seen = set()
    for seed in range(first, first + count):
        print(json.dumps({"seed": seed}), flush=True)
        report: dict[str, Any] = {"seed": seed, "done": True}
        program = []
        try:
            with judging.within(SECONDS):
                program = make(seed)
                outcome = judge(program)
            report |= {
                "statements": len(program),
                "agreed": Counter(s.kind for s in outcome.agreed),
                "raised": Counter(s.kind for s in outcome.raised),
            }
            report["documented"] = outcome.documented
            failure = outcome.failure
        except judging.TooLong:
            failure = judging.Failure("time", making.text_of(program), f"more than {SECONDS} s")
        except MemoryError:
            failure = judging.Failure("memory", making.text_of(program), "MemoryError")
        except Exception as error:  # an error of the generator or the judge
            failure = judging.Failure("fuzz itself", making.text_of(program), f"{type(error).__name__}: {error}")
        if failure:
            stands = failure.kind not in ("time", "memory", "fuzz itself")
            if stands and (mode != "torch" or failure.signature not in seen):
                seen.add(failure.signature)
                program, failure = judging.shrunk(program, judge, failure)
            signature = report["signature"] = failure.signature
            report["kind"] = failure.kind
            if signature not in seen or stands:
                seen.add(signature)
                report |= {"program": making.text_of(program), "what": failure.what[:600]}
        print(json.dumps(report), flush=True)


class Run(NamedTuple):
    """The results of a mode, counted by kind of statement, by difference, and by signature."""

    mode: str
    total: str
    agreed: Counter[str]
    raised: Counter[str]
    differed: Counter[str]
    documented: Counter[str]
    signatures: Counter[str]


def run(mode: str, first: int, count: int, seconds: float) -> Run:
    start, seed, last = time.time(), first, first + count
    programs = statements = 0
    agreed, raised, differed, documented, signatures = (Counter() for _ in range(5))
    while seed < last and time.time() - start < seconds:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            mode,
            "--worker",
            "--seed",
            str(seed),
            "-n",
            str(min(BATCH, last - seed)),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                if not line.startswith("{"):
                    continue  # LAPACK prints messages about invalid arguments
                report = json.loads(line)
                seed = report["seed"] + 1
                if not report.get("done"):
                    continue
                programs += 1
                statements += report.get("statements", 0)
                agreed.update(report.get("agreed", {}))
                raised.update(report.get("raised", {}))
                documented[report.get("documented") or ""] += 1
                if signature := report.get("signature"):
                    differed[report["kind"]] += 1
                    signatures[signature] += 1
                    if signatures[signature] == 1:
                        print(
                            f"---- {mode} {report['seed']}: {signature}\n{report['program']}\n# {report['what']}\n",
                            flush=True,
                        )
                if time.time() - start > seconds:
                    process.kill()
            if process.wait() not in (0, -9):
                print(f"---- {mode} {seed - 1}: the worker ended with {process.returncode}", flush=True)
                signatures[f"worker: {process.returncode}"] += 1
    total = f"{programs} programs, {statements} statements, {time.time() - start:.0f} s"
    return Run(mode, total, agreed, raised, differed, documented, signatures)


def table(runs: list[Run]) -> None:
    for run in runs:
        for title, counts in (("ended at a documented difference", run.documented), ("failures", run.signatures)):
            counts.pop("", 0)
            if counts:
                print(f"\n{run.mode}: {title}: {counts.total()}")
                for what, n in counts.most_common(60):
                    print(f"{n:7}  {what}")
    for run in runs:
        print(f"\n{run.mode + ': ' + run.total:50}{'agreed':>10}{'both raised':>13}{'differed':>10}")
        for kind in sorted({*run.agreed, *run.raised, *run.differed}):
            print(f"    {kind:46}{run.agreed[kind]:10}{run.raised[kind]:13}{run.differed[kind]:10}")
        print(f"    {'all':46}{run.agreed.total():10}{run.raised.total():13}{run.differed.total():10}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("mode", choices=[*MODES, "all"], help="all: one after the other")
    parser.add_argument("-n", type=int, default=200, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if given.worker:
        worker(given.mode, given.seed, given.n)
    else:
        modes = MODES if given.mode == "all" else (given.mode,)
        runs = [run(mode, given.seed, max(1, given.n // len(modes)), given.seconds / len(modes)) for mode in modes]
        table(runs)
        sys.exit(any(run.signatures for run in runs))
