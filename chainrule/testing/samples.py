"""Generate sample inputs for an op, from the ``samples`` and ``domain`` of its definition.

``samples`` is a list of dicts, from ``kinds.call``. Each dict is one call of the op:

==============  =====================================================================================
``"shapes"``    one entry for each operand: a shape (its elements are drawn), an array (such as an index; used unchanged)
                or a number. Elementwise ops omit it and are called with default shapes.
``"make"``      the kind of matrix of the drawn operands: "general" (well conditioned), "spd", "symmetric",
                "hermitian", "lower", "upper", "unit_lower", "unit_upper" or "normal" (no structure); one for the first
                operand, or one for each operand
``"complex"``   False excludes complex numbers (the definition must state the reason)
other keys      parameters, by name
==============  =====================================================================================

``domain`` is the range of the elements: ``(low, high)``, ``"bool"`` or ``"int"``, or one of these for each operand.
All elements of a sample are distinct and keep a distance from each other, from 0, and from integers and half-integers.
Functions may have kinks and steps there, which central differences must not cross.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chainrule._src.arrays.types import AnyArray, DTypeLike, NumpyArray
from chainrule._src.rules.primitive import Primitive
from chainrule._src.transforms.differences import normal_sample

ndarray = np.ndarray
_KINK = 0.02  # minimal distance of samples from multiples of 1/2

#: Shapes for elementwise ops of one, two and three operands: 0-d, 1-d, 2-d, empty, broadcast.
_ELEMENTWISE: dict[int, list[tuple[Any, ...]]] = {
    1: [((),), ((3,),), ((2, 3),), ((0, 3),)],
    2: [
        ((), ()),
        ((3,), (3,)),
        ((2, 3), (2, 3)),
        ((0, 3), (0, 3)),
        ((2, 3), (3,)),
        ((3, 1), (1, 2)),
        ((2, 3), ()),
        ((), (3,)),
        ((1, 3), (0, 1)),
    ],
    3: [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((3,), (2, 1), (1, 3)), ((0,), (1,), ())],
}


@dataclass(frozen=True)
class Sample:
    """A specification of one call of an op. ``draw`` generates its operands.

    Attributes:
        shapes: a shape, an array or a number for each operand.
        params: the op's parameters.
        domains: the range of the elements, for each operand.
        makes: the kind of matrix, for each operand.
        layout: "C" (contiguous), "F" (transposed memory) or "strided" (every other element of a larger array).
        complex: whether the drawn elements are complex numbers.
        may_be_complex: whether the sample also has a complex form.
    """

    shapes: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    domains: tuple[Any, ...] = ()
    makes: tuple[str, ...] = ()
    layout: str = "C"
    complex: bool = False
    may_be_complex: bool = True

    def __str__(self) -> str:
        def text(shape: AnyArray | tuple[int, ...]) -> str:
            return f"array{shape.shape}" if isinstance(shape, ndarray) else str(shape)

        parts = [text(s) for s in self.shapes] + [f"{k}={v!r}" for k, v in self.params.items()]
        extra = ("" if self.layout == "C" else f" {self.layout}") + (" complex" if self.complex else "")
        return f"({', '.join(parts)}){extra}"

    @property
    def floating(self) -> tuple[int, ...]:
        """Return the positions of the differentiable operands: drawn ones that are not booleans or integers."""
        return tuple(
            i for i, (s, d) in enumerate(zip(self.shapes, self.domains)) if type(s) is tuple and not isinstance(d, str)
        )

    @property
    def arrays(self) -> tuple[int, ...]:
        """Return the positions of the operands that are arrays (not numbers)."""
        return tuple(i for i, s in enumerate(self.shapes) if isinstance(s, (tuple, ndarray)))

    def draw(self, seed: int = 0, dtype: DTypeLike = np.float64) -> tuple[Any, ...]:
        """Generate operands; equal seeds give equal operands."""
        rng = np.random.default_rng((seed, zlib.crc32(str(self.shapes).encode())))
        sizes = [math.prod(s) if type(s) is tuple else 0 for s in self.shapes]
        ranks = iter(np.split(rng.permutation(sum(sizes)) if sum(sizes) else np.zeros(0, int), np.cumsum(sizes)[:-1]))
        operands = []
        for i, (shape, domain, make) in enumerate(zip(self.shapes, self.domains, self.makes)):
            operand_ranks = next(ranks)
            if isinstance(shape, ndarray):
                operands.append(np.roll(shape, seed, axis=-1) if shape.ndim else shape)
            elif type(shape) is not tuple:
                operands.append(shape)
            elif domain == "bool":
                operands.append(rng.random(shape) < 0.5)
            elif domain == "int":
                operands.append(rng.integers(1, 7, shape))
            else:
                values = _spread(rng, operand_ranks, sum(sizes), domain).reshape(shape)
                if self.complex:
                    values = values + 1j * _spread(rng, rng.permutation(sizes[i]), sizes[i], (-0.6, 0.6)).reshape(shape)
                kind = np.result_type(dtype, np.complex64) if self.complex else dtype
                operands.append(_with_layout(_MAKE[make](values).astype(kind), self.layout))
        return tuple(operands)

    def directions(self, position: int, operand: AnyArray) -> Iterator[Any]:
        """Iterate over a basis of the directions that preserve an operand's structure (symmetric, triangular ...)."""
        keep = _PROJECT[self.makes[position]]
        units = (1.0, 1j) if self.complex else (1.0,)
        for index, unit in itertools.product(np.ndindex(operand.shape), units):
            direction = np.zeros(operand.shape, np.complex128 if self.complex else np.float64)
            direction[index] = unit
            direction = keep(direction)
            if direction.any():
                yield direction

    def direction(self, position: int, operand: AnyArray, seed: int) -> Any:
        """Return a random direction that preserves an operand's structure."""
        rng = np.random.default_rng((seed, position, 7))
        return _PROJECT[self.makes[position]](normal_sample(rng, operand.shape, self.complex)).astype(operand.dtype)


def _spread(rng: np.random.Generator, ranks: NumpyArray, n: int, domain: tuple[float, float]) -> Any:
    """Return numbers with the given ranks among ``n`` numbers spread over the domain, none of them near a kink."""
    low, high = domain
    values = low + (high - low) * (ranks + rng.uniform(0.35, 0.65, len(ranks))) / max(n, 1)
    near = np.abs(2 * values - np.rint(2 * values)) < 2 * _KINK
    return np.where(near, np.rint(2 * values) / 2 + _KINK * np.where(np.rint(2 * values) / 2 >= high, -1, 1), values)


def _with_layout(x: AnyArray, layout: str) -> Any:
    if layout == "F":
        return np.asfortranarray(x)
    if layout == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


def _dagger(a: AnyArray) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _eye(a: AnyArray) -> AnyArray:
    return np.eye(a.shape[-2], a.shape[-1])


_MAKE: dict[str, Any] = {
    "normal": lambda a: a,
    "general": lambda a: a / max(a.shape[-2:]) + 2.5 * _eye(a),
    "spd": lambda a: a @ _dagger(a) / a.shape[-1] + _eye(a),
    "symmetric": lambda a: (a + np.swapaxes(a, -1, -2)) / 2,
    "hermitian": lambda a: (a + _dagger(a)) / 2,
    "lower": lambda a: np.tril(a) + 3 * _eye(a),
    "upper": lambda a: np.triu(a) + 3 * _eye(a),
    "unit_lower": lambda a: np.tril(a, -1) + _eye(a),
    "unit_upper": lambda a: np.triu(a, 1) + _eye(a),
}
_PROJECT: dict[str, Any] = {
    "normal": lambda a: a,
    "general": lambda a: a,
    "spd": lambda a: (a + _dagger(a)) / 2,
    "symmetric": lambda a: (a + np.swapaxes(a, -1, -2)) / 2,
    "hermitian": lambda a: (a + _dagger(a)) / 2,
    "lower": np.tril,
    "upper": np.triu,
    "unit_lower": lambda a: np.tril(a, -1),
    "unit_upper": lambda a: np.triu(a, 1),
}


def _per_operand(what: object, n: int, alone: bool) -> tuple[Any, ...]:
    """Return one entry per operand, from a sequence or from one entry for all (or only the first if ``alone``)."""
    if (
        isinstance(what, Sequence)
        and not isinstance(what, str)
        and not (len(what) == 2 and isinstance(what[0], (int, float)))
    ):
        return tuple(what)
    return (what, *("normal",) * (n - 1)) if alone else (what,) * n


def samples_of(prim: Primitive) -> list[Sample]:
    """Return all samples of an op.

    Raises:
        ValueError: the op is not elementwise and its definition has no shapes.
    """
    given = prim.samples if prim.samples is not None else [{}]
    found = []
    for entry in [given] if isinstance(given, Mapping) else given:
        params = {k: v for k, v in entry.items() if k not in ("shapes", "make", "complex")}
        if "shapes" in entry:
            choices = [tuple(tuple(s) if isinstance(s, list) else s for s in entry["shapes"])]
        elif prim.variadic or len(prim.operands) > 3 or (prim.parameters and set(params) != set(prim.parameters)):
            raise ValueError(
                f"primitive {prim.name}: its samples have no shapes or parameters: give samples=[{{'shapes': [(2, 3), "
                f"...], {', '.join(repr(p) + ': ...' for p in prim.parameters)}}}]"
            )
        else:
            choices = _ELEMENTWISE[len(prim.operands)]
        for shapes in choices:
            n = len(shapes)
            found.append(
                Sample(
                    shapes,
                    params,
                    _per_operand((-2, 2) if prim.domain in (None, "complex") else prim.domain, n, False),
                    _per_operand(entry.get("make", "normal"), n, True),
                    may_be_complex=entry.get("complex", True),
                )
            )
    if prim.kind == "elementwise" and prim.samples is None:
        matrix = next(s for s in found if s.shapes[0] == (2, 3))
        found += [replace(matrix, layout="F"), replace(matrix, layout="strided")]
    else:
        found += [replace(s, layout="F") for s in found if any(type(x) is tuple and len(x) > 1 for x in s.shapes)][:1]
    return found


def with_numbers(prim: Primitive) -> list[Sample]:
    """Return samples of a binary elementwise op in which one operand is a Python number."""
    if prim.kind != "elementwise" or len(prim.operands) != 2 or prim.parameters or prim.promotion == "none":
        return []
    whole = next(s for s in samples_of(prim) if s.shapes == ((3,), (3,)))
    if any(isinstance(d, str) for d in whole.domains):
        return []
    inside = [low + 0.62 * (high - low) for low, high in whole.domains]
    return [replace(whole, shapes=((3,), inside[1])), replace(whole, shapes=(inside[0], (3,)))]
