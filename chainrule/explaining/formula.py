"""A row's formula for one operand of one node: an expression tree, simplified for that node, in the user's names.

The row's text speaks of ``g``, ``out``, operands and parameters. Parameters (and operands that are plain numbers) are put
in as literals, choices they decide are made, and what remains are arrays. Everything else that is shown of a rule (NumPy
text, LaTeX, index form, numbers) is read off the same tree.
"""

from __future__ import annotations

import ast
import builtins
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from chainrule.explaining.simplify import Renamed, copied, free_names
from chainrule.rows.kinds import unbroadcast
from chainrule.rows.primitive import TABLE, Primitive

BAR = "\u0304"


def bar(name: str) -> str:
    """The name of a value's cotangent: ``X̄``."""
    return name + BAR


class Formula:
    """One VJP of one node.

    Attributes:
        tree: the expression, over the row's names.
        values: what each name in it stands for: arrays, or what is no literal.
        names: what each is called by the user; names of helper functions are not among them.
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
        dtype: Any,
        elementwise: bool,
    ) -> None:
        used = free_names(tree)
        self.tree = tree
        self.values = {k: v for k, v in values.items() if k in used}
        self.names = {k: names.get(k, k) for k in self.values}
        taken = set(self.names.values())
        self.helpers = {k: helper(k) for k in used if k not in self.values}
        self.aliases = {k: k + "_" if k in taken else k for k in self.helpers}
        self.shape = shape
        self.dtype = dtype
        self.elementwise = elementwise
        self.raw_shape, self.raw_dtype = self._raw(out_shape)

    def _raw(self, out_shape: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
        """Shape and dtype of the tree's value. Elementwise, they need not be computed."""
        arrays = [v for v in self.values.values() if isinstance(v, np.ndarray)]
        if self.elementwise and out_shape == self.shape and all(a.dtype == self.dtype for a in arrays):
            return self.shape, self.dtype
        with np.errstate(all="ignore"):
            value = np.asarray(self.raw())
        return value.shape, value.dtype

    def raw(self) -> Any:
        """The tree's value, before it is fit to the operand."""
        code = compile(ast.fix_missing_locations(ast.Expression(self.tree)), "<formula>", "eval")
        return eval(code, {**self.helpers, **self.values})

    @property
    def stretched(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The axes that broadcasting added to the operand, and those it stretched."""
        extra = len(self.raw_shape) - len(self.shape)
        if extra < 0:
            return (), ()
        long = tuple(extra + i for i, n in enumerate(self.shape) if n == 1 and self.raw_shape[extra + i] != 1)
        return tuple(range(extra)), long

    def renamed(self, call: Callable[[str], str]) -> ast.expr:
        tree: ast.expr = Renamed(call).visit(copied(self.tree))
        return tree

    def numpy(self) -> str:
        """Runnable text in the user's names, sums over broadcast axes and casts included."""
        text = ast.unparse(self.renamed(lambda name: self.names.get(name) or self.aliases.get(name, name)))
        np_ = self.aliases.get("np", "np") if "np" not in self.names.values() else "np_"
        extra, long = self.stretched
        if self.raw_dtype.kind == "c" and self.dtype.kind != "c":
            text = f"{np_}.real({text})"
        if extra:
            text = f"{np_}.sum({text}, axis={extra[0] if len(extra) == 1 else extra})"
            long = tuple(a - len(extra) for a in long)
        if long:
            text = f"{np_}.sum({text}, axis={long[0] if len(long) == 1 else long}, keepdims=True)"
        if self._summed_shape() != self.shape:
            text = f"{np_}.broadcast_to({text}, {self.shape})"
        if self.raw_dtype != self.dtype and not (self.raw_dtype.kind == "c" and self._real_part() == self.dtype):
            inner = text if (text.endswith(")") and text.startswith(np_)) or text.isidentifier() else f"({text})"
            text = f"{inner}.astype({np_}.{self.dtype.name})"
        return text

    def _real_part(self) -> Any:
        return np.empty(0, self.raw_dtype).real.dtype

    def _summed_shape(self) -> tuple[int, ...]:
        extra, long = self.stretched
        return tuple(1 if i in long else n for i, n in enumerate(self.raw_shape) if i not in extra)

    def environment(self) -> dict[str, Any]:
        """The namespace in which ``numpy()`` runs."""
        found = {self.aliases[k]: v for k, v in self.helpers.items()}
        found.setdefault("np" if "np" not in self.names.values() else "np_", np)
        for key, value in self.values.items():
            found[self.names[key]] = value
            found[unicodedata.normalize("NFKC", self.names[key])] = value  # Python reads identifiers so
        return found

    def value(self) -> Any:
        """The VJP, by the formula."""
        return unbroadcast(np.asarray(self.raw()), self.shape, self.dtype)


def helper(prim: Primitive, name: str) -> Any:
    """What a name in a row's text means that is neither an array nor a parameter; KeyError where nothing is called so."""
    if name == "np":
        return np
    if name == "unbroadcast":
        return unbroadcast
    for rule in prim.vjps.values():  # what stands beside the rule: its own functions
        scope = getattr(rule, "__globals__", {})
        if name in scope:
            return scope[name]
    return TABLE[name] if name in TABLE else vars(builtins)[name]


def formula_text(prim: Primitive, position: int) -> str | None:
    """The row's text for an operand; a user's row or Function may have none."""
    name = prim.operands[-1] if prim.variadic else prim.operands[position] if position < len(prim.operands) else ""
    return prim.formula.get(name)
