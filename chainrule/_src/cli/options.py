"""What can be written on the command line."""

from __future__ import annotations

import argparse

import chainrule
from chainrule._src import native
from chainrule._src.native.blas import blas_name

_CODES = """\
exit codes:
  0  ok
  1  a check failed: of `chainrule check`, or the one that every explanation makes of itself
  2  the command line was wrong: an option, a file, a name
  3  your program raised; its traceback is shown
"""

_EXPLAIN = """\
The script runs like `python script.py`, once and whole; then the tensors that its variables hold are explained.

examples:
  chainrule explain fit.py                                  the tensor that was computed last, all leaves
  chainrule explain fit.py --out Y --wrt X --grad G         G is a variable of the script
  chainrule explain fit.py --out y --grad '[1, 0, 0]'       ... or a literal
  chainrule explain fit.py --out loss --html page.html --open
  chainrule explain fit.py --out loss --by term             which term of the loss pulls on what, and how much
  chainrule explain fit.py --out Y --dot - | dot -Tpng > graph.png
  chainrule explain train.py --at-backward 1                what the first backward() of the script computes
  chainrule explain train.py --out loss -- --epochs 1       what comes after -- is the script's
"""

_OPS = """\
examples:
  chainrule ops                     all operations, by the kind of their Jacobian
  chainrule ops --like conv         those with `conv` in their name or description
  chainrule ops exp                 one of them: formulas, what it saves, other names
  chainrule ops softmax einsum      several; of a composite the parts it is made of
  chainrule ops exp --formula       the formulas alone
"""

_CHECK = """\
examples:
  chainrule check model.py::loss                            at random inputs of shape (3,)
  chainrule check model.py::loss --shape 2,3 --shape 3      at random inputs of these shapes
  chainrule check model.py::loss --input '[[1., 2.]]'       at this input
  chainrule check model.py::loss --set dim=0 --order 2      with a parameter; second derivatives too
  chainrule check rows.py::my_primitive                     every column of a row made with chainrule.primitive
  chainrule check tanh                                      ... or of a row of chainrule's own
"""

_DEMO = """\
example:
  chainrule demo
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class _Version(argparse.Action):
    """Prints the version, where eager operations run, and whose products of matrices NumPy calls, which only this asks for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        where = f"in Python ({native.why_not})" if native.why_not else "in C"
        print(f"chainrule {chainrule.__version__}, operations {where}; products of matrices: {blas_name()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
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
    _ops(command("ops", "the operations and their derivatives", _OPS))
    _check(command("check", "check the gradient of a function against differences of its values", _CHECK))
    command("demo", "a tour of what chainrule does, in two seconds", _DEMO)
    return top


def _explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("script", help="the Python file to run")
    command.add_argument(
        "--out", metavar="NAME", help="the tensor to explain: a variable, or a path such as net.loss or ys[0] "
        "(default: the variable whose tensor was computed last)",
    )  # fmt: skip
    command.add_argument(
        "--wrt", metavar="NAME", action="append", help="with respect to this tensor; may be given several times "
        "(default: all leaves that require grad)",
    )  # fmt: skip
    command.add_argument(
        "--grad", metavar="G", help="∂L/∂out, of the shape of out: a variable, `ones`, or a literal such as '[1, 2]'"
    )
    command.add_argument(
        "--at-backward", metavar="N", type=int, help="stop the script as its Nth backward pass begins, and explain that "
        "pass: what it starts from, and with which gradient",
    )  # fmt: skip
    command.add_argument(
        "--by", choices=("term", "line", "module"), help="print only what the gradients are made of: the terms of the loss, "
        "the lines that read the leaves, or the modules that hold them",
    )  # fmt: skip
    for name, what in FILES.items():
        command.add_argument(f"--{name}", metavar="FILE", help=f"write {what} (- for the terminal)")
    command.add_argument("--open", action="store_true", help="open the page in a browser")


#: The files that `chainrule explain` can write.
FILES = {
    "html": "the whole explanation as a page that needs no network",
    "svg": "the graph as a picture",
    "dot": "the graph for Graphviz",
    "json": "everything as data",
}


def _ops(command: argparse.ArgumentParser) -> None:
    command.add_argument("names", nargs="*", metavar="name", help="an operation, as in exp, linalg.inv or np.exp")
    command.add_argument("--like", metavar="TEXT", help="list those with TEXT in their name or description")
    command.add_argument("--kind", metavar="KIND", help="list those of a kind")
    command.add_argument("--formula", action="store_true", help="print only the formulas")


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument("function", metavar="script.py::f", help="a function of a file, or a row of chainrule's table")
    command.add_argument(
        "--input", metavar="LITERAL", action="append", help="an input as a literal, in float64; once for each parameter"
    )
    command.add_argument("--shape", metavar="2,3", action="append", help="the shape of a random input (default: 3)")
    command.add_argument(
        "--set", metavar="NAME=LITERAL", action="append", default=[], help="a parameter that is not differentiated"
    )
    command.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: second derivatives too")
    command.add_argument("--seed", type=int, default=0, help="of the random inputs (default: 0)")
