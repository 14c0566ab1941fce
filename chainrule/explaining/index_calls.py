"""Elements of what NumPy's functions return, read from the result's index inwards (see ``index_form``)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

Index = tuple[Any, ...]  # letters, or numbers
ADD, MUL, NEG, POW, ATOM = range(1, 6)


class NoForm(Exception):
    """This formula has no form for one element."""


class Calls:
    """Readers of calls, by NumPy's names; what they read the rest with is ``index_form.Element``'s."""

    concrete: bool
    product: str
    free: Any
    at: Callable[[ast.expr, Index], tuple[str, int]]
    shape: Callable[[ast.expr], tuple[int, ...]]
    total: Callable[[Sequence[int], Callable[[Index], tuple[str, int]]], tuple[str, int]]

    def _np_where(self, node: ast.Call, index: Index) -> tuple[str, int]:
        test, yes, no = (self.at(a, index)[0] for a in node.args)
        test = test[1:-1] if test.startswith("[") and test.endswith("]") else test
        return f"({yes} if {test} else {no})", ATOM

    def _np_outer(self, node: ast.Call, index: Index) -> tuple[str, int]:
        if len(index) != 2:
            raise NoForm
        a, b = (self.at(array, (i,)) for array, i in zip(node.args, index))
        return enclosed(*a, MUL) + self.product + enclosed(*b, NEG), MUL

    def _np_expand_dims(self, node: ast.Call, index: Index) -> tuple[str, int]:
        axes = ast.literal_eval(node.args[1])
        axes = axes if isinstance(axes, tuple) else (axes,)
        if any(a >= 0 for a in axes) or any(-a > len(index) for a in axes):
            raise NoForm
        gone = {a % len(index) for a in axes}
        return self.at(node.args[0], tuple(i for at, i in enumerate(index) if at not in gone))

    def _np_broadcast_to(self, node: ast.Call, index: Index) -> tuple[str, int]:
        return self.at(node.args[0], index)

    def _np_transpose(self, node: ast.Call, index: Index) -> tuple[str, int]:
        order = [ast.literal_eval(a) for a in items_of(node.args[1])]
        found: list[Any] = [None] * len(index)
        if len(order) != len(index):
            raise NoForm
        for i, axis in zip(index, order):
            found[axis] = i
        return self.at(node.args[0], tuple(found))

    def _np_swapaxes(self, node: ast.Call, index: Index) -> tuple[str, int]:
        a, b = (ast.literal_eval(x) for x in node.args[1:])
        found = list(index)
        found[a], found[b] = found[b], found[a]
        return self.at(node.args[0], tuple(found))

    def _np_moveaxis(self, node: ast.Call, index: Index) -> tuple[str, int]:
        source, to = (ast.literal_eval(x) for x in node.args[1:])
        found = list(index)
        moved = found.pop(to)
        found.insert(source % len(index), moved)
        return self.at(node.args[0], tuple(found))

    def _np_flip(self, node: ast.Call, index: Index) -> tuple[str, int]:
        inner = node.args[0]
        if called(inner) == "np.cumsum" and called(inner.args[0]) == "np.flip":  # type: ignore[attr-defined]
            return self._from_here_on(inner.args[0].args[0], ast.literal_eval(node.args[1]), index)  # type: ignore[attr-defined]
        axes = ast.literal_eval(node.args[1])
        shape = self.shape(node.args[0])
        found = list(index)
        for axis in axes if isinstance(axes, tuple) else (axes,):
            last = shape[axis] - 1
            found[axis] = last - found[axis] if isinstance(found[axis], int) else f"{last}-{found[axis]}"
        return self.at(node.args[0], tuple(found))

    def _from_here_on(self, array: ast.expr, axis: int, index: Index) -> tuple[str, int]:
        """A sum that runs from an index to the end."""
        size, start = self.shape(array)[axis], index[axis]
        found = list(index)
        if self.concrete:
            return self.total(
                [size - start],
                lambda bound: self.at(
                    array, (*found[: axis % len(found)], start + bound[0], *found[axis % len(found) + 1 :])
                ),
            )
        found[axis] = next(self.free)
        text, level = self.at(array, tuple(found))
        return f"Σ_{{{found[axis]}≥{start}}} {enclosed(text, level, MUL)}", ADD

    def _np_tril(self, node: ast.Call, index: Index) -> tuple[str, int]:
        return self._triangle(node, index, "≤")

    def _np_triu(self, node: ast.Call, index: Index) -> tuple[str, int]:
        return self._triangle(node, index, "≥")

    def _triangle(self, node: ast.Call, index: Index, sign: str) -> tuple[str, int]:
        if len(index) < 2 or len(node.args) != 2:
            raise NoForm
        k = ast.literal_eval(node.args[1])
        text, level = self.at(node.args[0], index)
        shift = f" + {k}" if k > 0 else f" − {-k}" if k < 0 else ""
        return f"{enclosed(text, level, MUL)}{self.product}[{index[-1]} {sign} {index[-2]}{shift}]", MUL

    def _np_unfit(self, node: ast.Call, index: Index) -> tuple[str, int]:
        whole, small = self.shape(node.args[0]), ast.literal_eval(node.args[1])
        extra = len(whole) - len(small)
        long = [extra + a for a, n in enumerate(small) if n == 1 and whole[extra + a] != 1]
        axes = [*range(extra), *long]

        def body(bound: Index) -> tuple[str, int]:
            full = list(bound[:extra]) + list(index)
            for axis, i in zip(long, bound[extra:]):
                full[axis] = i
            return self.at(node.args[0], tuple(full))

        return self.total([whole[a] for a in axes], body)

    def _np_einsum(self, node: ast.Call, index: Index) -> tuple[str, int]:
        spec = ast.literal_eval(node.args[0])
        inputs, out = spec.split("->")
        parts = inputs.split(",")
        named = out.replace("...", "")
        batch = index[: len(index) - len(named)]
        where = dict(zip(named, index[len(index) - len(named) :]))
        sizes: dict[str, int] = {}
        for part, array in zip(parts, node.args[1:]):
            letters = part.replace("...", "")
            shape = self.shape(array)
            sizes.update(zip(letters, shape[len(shape) - len(letters) :]))
        summed = [c for c in sizes if c not in where]

        def body(bound: Index) -> tuple[str, int]:
            at = {**where, **dict(zip(summed, bound))}
            texts = []
            for part, array in zip(parts, node.args[1:]):
                lead = batch if "..." in part else ()
                texts.append(enclosed(*self.at(array, (*lead, *(at[c] for c in part.replace("...", "")))), NEG))
            return self.product.join(texts), MUL

        return self.total([sizes[c] for c in summed], body)

    def _sum(self, node: ast.Call, index: Index) -> tuple[str, int]:
        array = node.func.value  # type: ignore[attr-defined]
        shape = self.shape(array)
        axes, kept = axes_of(node, len(shape))
        if not kept:
            index = tuple(index[len(index) - len(shape) + len(axes) :])
            full: list[Any] = list(index)
            for axis in sorted(axes):
                full.insert(axis, None)
        else:
            full = list(index[len(index) - len(shape) :])

        def body(bound: Index) -> tuple[str, int]:
            at = list(full)
            for axis, i in zip(axes, bound):
                at[axis] = i
            return self.at(array, tuple(at))

        return self.total([shape[a] for a in axes], body)

    def _mean(self, node: ast.Call, index: Index) -> tuple[str, int]:
        shape = self.shape(node.func.value)  # type: ignore[attr-defined]
        axes, _ = axes_of(node, len(shape))
        count = 1
        for axis in axes:
            count *= shape[axis]
        text, level = self._sum(node, index)
        return f"{enclosed(text, level, MUL)} / {count}", MUL

    def _reshape(self, node: ast.Call, index: Index) -> tuple[str, int]:
        if len(node.args) != 1:
            raise NoForm
        array = node.func.value  # type: ignore[attr-defined]
        source, target = self.shape(array), ast.literal_eval(node.args[0])
        kept = [i for i, n in zip(index, target) if n != 1]
        if [n for n in source if n != 1] != [n for n in target if n != 1] or 0 in source:
            raise NoForm
        rest = iter(kept)
        return self.at(array, tuple(0 if n == 1 else next(rest) for n in source))


def axes_of(node: ast.Call, ndim: int) -> tuple[tuple[int, ...], bool]:
    keywords = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
    axis = ast.literal_eval(node.args[0]) if node.args else keywords.get("axis")
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes), bool(keywords.get("keepdims"))


def items_of(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):  # np.array([...])
        node = node.args[0]
    if not isinstance(node, (ast.List, ast.Tuple)):
        raise NoForm
    return node.elts


def called(node: ast.expr) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def enclosed(text: str, level: int, needed: int) -> str:
    return text if level >= needed else f"({text})"


def signed(text: str) -> tuple[str, int]:
    return (text, ADD) if text.startswith("-") else (text, ATOM)
