"""The argument parser of the command line, with its help texts. ``main`` calls ``parser``."""

from __future__ import annotations

import argparse

import chainrule
from chainrule._src import native
from chainrule._src.native.blas import blas_name
from chainrule._src.tape import trial

_CODES = """\
exit codes:
  0  ok
  1  a check failed: of `chainrule check`, or the self-check of an explanation
  2  wrong usage: an option, a file, a name
  3  your program raised; its traceback is shown
"""

_EXPLAIN = """\
Runs the script like `python script.py` to its end, then explains the tensors in its variables.

examples:
  chainrule explain fit.py                                  the tensor that was computed last, all leaves
  chainrule explain fit.py --out Y --wrt X --grad G         G is a variable of the script
  chainrule explain fit.py --out y --grad '[1, 0, 0]'       ... or a literal
  chainrule explain fit.py --out loss --html page.html --open
  chainrule explain fit.py --out loss --by term             the contribution of each term of the loss
  chainrule explain fit.py --out Y --dot - | dot -Tpng > graph.png
  chainrule explain train.py --at-backward 1                the script's first backward()
  chainrule explain train.py --out loss -- --epochs 1       passes arguments after -- to the script
"""

_OPS = """\
examples:
  chainrule ops                     all operations, by the kind of their Jacobian
  chainrule ops --like conv         those with `conv` in their name or description
  chainrule ops exp                 one operation: formulas, saved values, other names
  chainrule ops softmax einsum      several; for composites, the primitives that they call
  chainrule ops exp --formula       only the formulas
"""

_CHECK = """\
examples:
  chainrule check model.py::loss                            at random inputs of shape (3,)
  chainrule check model.py::loss --shape 2,3 --shape 3      at random inputs of these shapes
  chainrule check model.py::loss --input '[[1., 2.]]'       at this input
  chainrule check model.py::loss --set dim=0 --order 2      with a parameter; second derivatives too
  chainrule check rows.py::my_primitive                     all rules of a primitive from chainrule.primitive
  chainrule check tanh                                      ... or of one of chainrule's own
"""

_DEMO = """\
example:
  chainrule demo
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class _Version(argparse.Action):
    """The action of --version: print the version, the backend of eager operations (C or Python), and NumPy's BLAS."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        trial.run_self_test()
        where = f"in Python ({native.why_not})" if native.why_not else "in C"
        print(f"chainrule {chainrule.__version__}, operations {where}; matrix products: {blas_name()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    top = argparse.ArgumentParser(
        prog="chainrule", description=chainrule.__doc__ and chainrule.__doc__.splitlines()[0], epilog=_CODES,
        formatter_class=_Help, allow_abbrev=False,
    )  # fmt: skip
    top.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, summary: str, examples: str, usage: str | None = None) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=summary, usage=usage, description=summary[0].upper() + summary[1:] + ".", epilog=examples + "\n" + _CODES,
            formatter_class=_Help, allow_abbrev=False,
        )  # fmt: skip

    summary = "run a script and explain the gradient of a tensor it computed"
    _explain(
        command("explain", summary, _EXPLAIN, "chainrule explain script.py [options] [-- arguments of the script]")
    )
    _ops(command("ops", "list operations and their derivatives", _OPS))
    _check(command("check", "check the gradient of a function against finite differences", _CHECK))
    command("demo", "show a tour of chainrule in two seconds", _DEMO)
    return top


def _explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("script", help="the Python file to run")
    command.add_argument(
        "--out", metavar="NAME", help="the tensor to explain: a variable, or a path such as net.loss or ys[0] "
        "(default: the variable whose tensor was computed last)",
    )  # fmt: skip
    command.add_argument(
        "--wrt", metavar="NAME", action="append", help="differentiate with respect to this tensor; may be repeated "
        "(default: all leaves that require grad)",
    )  # fmt: skip
    command.add_argument(
        "--grad", metavar="G", help="∂L/∂out, of the shape of out: a variable, `ones`, or a literal such as '[1, 2]'"
    )
    command.add_argument(
        "--at-backward", metavar="N", type=int, help="stop the script when its Nth backward pass begins, and explain that "
        "pass with its outputs and gradients",
    )  # fmt: skip
    command.add_argument(
        "--by", choices=("term", "line", "module"), help="print only the contributions to the gradients: by terms of the "
        "loss, by lines that read the leaves, or by modules",
    )  # fmt: skip
    for name, what in FILES.items():
        command.add_argument(f"--{name}", metavar="FILE", help=f"write {what} (- for the terminal)")
    command.add_argument("--open", action="store_true", help="open the page in a browser")


#: The files that `chainrule explain` can write.
FILES = {
    "html": "the explanation as a self-contained page",
    "svg": "the graph as an image",
    "dot": "the graph for Graphviz",
    "json": "the explanation as data",
}


def _ops(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="*", metavar="name", help="an operation, as in exp, linalg.inv or np.exp")
    command.add_argument("--like", metavar="TEXT", help="list those with TEXT in their name or description")
    command.add_argument("--kind", metavar="KIND", help="list those of this kind")
    command.add_argument("--formula", action="store_true", help="print only the formulas")


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "function", metavar="script.py::f", help="a function of a file, or one of chainrule's primitives"
    )
    command.add_argument(
        "--input", metavar="LITERAL", action="append", help="an input as a literal, in float64; once for each parameter"
    )
    command.add_argument("--shape", metavar="2,3", action="append", help="the shape of a random input (default: 3)")
    command.add_argument(
        "--set", metavar="NAME=LITERAL", action="append", default=[], help="a parameter that is not differentiated"
    )
    command.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: second derivatives too")
    command.add_argument("--seed", type=int, default=0, help="the seed of the random inputs (default: 0)")
