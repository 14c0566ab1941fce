"""The VJP formula of one operand of one node: an expression tree, simplified for that node, in the user's names.

The formula of an op definition is written with ``g``, ``out``, operands and parameters. Parameters (and operands that are plain
numbers) are replaced by literals and conditions on them are evaluated, so that only arrays remain. NumPy text, LaTeX, MathML,
index form and numbers are all computed from this tree. ``rules`` makes a ``Formula``.
"""

from __future__ import annotations

import ast
import builtins
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chainrule._src.arrays.types import NumpyDType, Params
from chainrule._src.explaining.notation import MUL, Alphabet, Printer
from chainrule._src.explaining.tree import RenameNames, copy_tree, evaluate_tree, free_names, is_scalar
from chainrule._src.rules.kinds import unbroadcast
from chainrule._src.rules.primitive import TABLE, Primitive


class Formula:
    """One VJP of one node.

    Attributes:
        tree: the expression, over the names of the op definition.
        values: maps each name in it to its value: an array, or an object that is not a literal.
        names: maps these names to the user's names; helper functions are not included.
        shape, dtype: of the operand, and so of the result.
        helpers: functions and modules that the tree uses.
        raw_shape, raw_dtype: of the tree's value, before it is summed and cast to the operand's shape and dtype.
    """

    def __init__(
        self,
        tree: ast.expr,
        values: Mapping[str, Any],
        names: Mapping[str, str],
        helper: Callable[[str], Any],
        out_shape: tuple[int, ...],
        shape: tuple[int, ...],
        dtype: NumpyDType,
        elementwise: bool,
    ) -> None:
        used = free_names(tree)
        self.tree = tree
        self.values = {k: v for k, v in values.items() if k in used}
        self.names = {k: names.get(k, k) for k in self.values}
        taken = set(self.names.values())
        self.helpers = {k: helper(k) for k in used if k not in self.values}
        self.aliases = {k: k + "_" if k in taken else k for k in self.helpers}
        self.np = "np_" if "np" in taken else "np"
        self.shape = shape
        self.dtype = dtype
        arrays = [v for v in self.values.values() if isinstance(v, np.ndarray)]
        if elementwise and out_shape == shape and all(a.dtype == dtype for a in arrays):
            self.raw_shape, self.raw_dtype = shape, dtype
        else:
            value = np.asarray(self.raw())
            self.raw_shape, self.raw_dtype = value.shape, value.dtype
        self.stretched = broadcast_axes(self.raw_shape, shape)

    def raw(self) -> Any:
        """Return the tree's value, before it is summed and cast to the operand's shape and dtype."""
        return evaluate_tree(self.tree, {**self.helpers, **self.values})

    def value(self) -> Any:
        """Return the VJP, computed by the formula."""
        return unbroadcast(np.asarray(self.raw()), self.shape, self.dtype)

    def numpy(self) -> str:
        """Return executable NumPy source in the user's names, with sums over broadcast axes and casts."""
        text = ast.unparse(self.renamed(self.tree, {**self.aliases, **self.names}))
        added, long = self.stretched
        if self.raw_dtype.kind == "c" and self.dtype.kind != "c":
            text = f"{self.np}.real({text})"
        if added:
            text = f"{self.np}.sum({text}, axis={added[0] if len(added) == 1 else added})"
        if long:
            axes = tuple(a - len(added) for a in long)
            text = f"{self.np}.sum({text}, axis={axes[0] if len(axes) == 1 else axes}, keepdims=True)"
        if tuple(1 if i in long else n for i, n in enumerate(self.raw_shape) if i not in added) != self.shape:
            text = f"{self.np}.broadcast_to({text}, {self.shape})"
        real = np.empty(0, self.raw_dtype).real.dtype if self.dtype.kind != "c" else self.raw_dtype
        if real != self.dtype:
            inner = text if (text.endswith(")") and text.startswith(self.np)) or text.isidentifier() else f"({text})"
            text = f"{inner}.astype({self.np}.{self.dtype.name})"
        return text

    def environment(self) -> Params:
        """Return the namespace in which the source of ``numpy()`` runs."""
        found = {self.np: np} | {self.aliases[k]: v for k, v in self.helpers.items()}
        for key, value in self.values.items():
            found[self.names[key]] = value
            found[unicodedata.normalize("NFKC", self.names[key])] = value  # Python normalizes identifiers
        return found

    def equation(self, left: str, sign: str, to: Alphabet) -> str:
        """Return ``Xˉ = …`` in an alphabet; ``sign`` is "+=" if other terms are added."""
        scalars = frozenset(self.names[k] for k, v in self.values.items() if is_scalar(v))
        axes = ", ".join(str(a) for part in self.stretched for a in part)
        right = Printer(to, scalars)(self.renamed(self.tree), MUL if axes else 0)
        if axes:
            right = to.put("sum over", to.put("axis", to.put("number", axes)), right)
        return to.put("formula", to.binary(to.name(left), sign, right))

    def renamed(self, part: ast.expr, names: Mapping[str, str] | None = None) -> ast.expr:
        """Return a part of the tree in the user's names."""
        known = self.names if names is None else names
        tree: ast.expr = RenameNames(lambda name: known.get(name, name)).visit(copy_tree(part))
        return tree


def broadcast_axes(whole: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes that broadcasting added to an operand of a shape, and the axes of length 1 that it repeated."""
    extra = len(whole) - len(shape)
    if extra < 0:
        return (), ()
    long = tuple(extra + i for i, n in enumerate(shape) if n == 1 and whole[extra + i] != 1)
    return tuple(range(extra)), long


def formula_helper(prim: Primitive, name: str) -> Any:
    """Return the object of a name in a formula that is neither an array nor a parameter; raise KeyError if there is none."""
    if name in ("np", "unbroadcast"):
        return np if name == "np" else unbroadcast
    for rule in prim.vjps.values():  # functions of the rule's module
        scope = getattr(rule, "__globals__", {})
        if name in scope:
            return scope[name]
    return TABLE[name] if name in TABLE else vars(builtins)[name]


def formula_text(prim: Primitive, position: int) -> str | None:
    """Return the formula of an operand; None if a user-defined primitive or Function has none."""
    name = prim.operands[-1] if prim.variadic else prim.operands[position] if position < len(prim.operands) else ""
    return prim.formula.get(name)
