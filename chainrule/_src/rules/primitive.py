"""The ``Primitive``: an op definition with its value, derivative rules and batching rule; ``TABLE`` holds them by name.

The decorators in ``kinds`` make primitives. A rule is a NumPy function, and its parameter names determine its arguments:

======================  =============================================================
``g``                   the cotangent of the output (a tuple where there are several)
``t``                   the tangent of the operand that the rule is for
an operand's name       that operand's value: it is saved for the backward pass
``out``, output names   the result: it is saved for the backward pass
``x_shape``, ``x_dtype``  shape or dtype of operand ``x``: nothing is saved
a parameter's name      that parameter (``axis``, ``keepdims`` ...)
``**params``            all parameters that the rule does not name and that have no default
======================  =============================================================

The names are read once, at import. A node saves exactly the values that the rules name.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from chainrule._src.arrays.types import AnyFunction, Params
from chainrule._src.messages import errors
from chainrule._src.rules.registry import OpRegistry

Rule = AnyFunction
_UNSET: Any = None  # an attribute that is set before registration, or never


def call(*operands: object, **params: object) -> Params:
    """Return one set of arguments for ``samples``: ``call((2, 3), axis=-1)`` (the format is in ``testing.samples``)."""
    return {"shapes": operands, **params}


class unsupported:
    """Marks a rule that does not exist, with the reason."""

    __module__ = "chainrule.primitive"

    def __init__(self, why: str) -> None:
        self.why = why


#: a declaration for one operand: a rule, a constant partial, or ``unsupported``
Cell: TypeAlias = Rule | unsupported | complex


class TableError(TypeError):
    """An op definition is incomplete, or names something that does not exist."""

    __module__ = "chainrule.primitive"


def no_operand(primitive: str, name: str) -> TableError:
    return TableError(f"primitive {primitive}: a rule for {name!r}, which is not an operand of it")


def code_of(function: Rule) -> CodeType:
    """Return the code object of a rule (of the wrapped function under ``functools.wraps``), to read its parameter names."""
    try:
        return getattr(function, "__wrapped__", function).__code__
    except AttributeError:
        raise TableError(
            "a rule must be a Python function whose parameter names state the values that it reads: write "
            f"{function!r} as a lambda"
        ) from None


def argument_names(rule: Rule | CodeType) -> tuple[str, ...]:
    """Return the names of a rule's parameters, positional and keyword."""
    code = rule if isinstance(rule, CodeType) else code_of(rule)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def to_camel_case(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)


class Primitive:
    """An op definition. Calling it applies the op to any mixture of arrays, tensors and other array-likes.

    Attributes:
        name: PyTorch's name where there is one.
        kind: "elementwise", "linear", "contraction", "opaque" or "discrete".
        value: the operation on raw arrays.
        operands: names of the array operands; a last name that starts with ``*`` stands for any number.
        outputs: names of the outputs; ``("out",)`` for most.
        parameters: names of the static parameters. ``required``: names of the static parameters without a default.
        saves: names of the values that a node saves, in order.
        vjps: for each differentiable operand the rule from cotangent to cotangent.
        reads: for each differentiable operand the names that its rule reads.
        shared: an intermediate result of several rules, computed once: its name and rule.
        partials: the partial derivatives from which the VJPs of elementwise operands are derived.
        pullback: ``(node, g, saved, edges) -> cotangents``; the engine calls it.
        jvp: ``(operands, tangents, out, params) -> tangent``; ``Dual`` calls it.
        batch: ``(prim, payloads, batched, size, params) -> payload``; ``Batched`` calls it.
        formula: for each differentiable operand its VJP as NumPy text, as declared or from the rule's source.
        samples: operands and parameters to check the primitive with (the format is in ``testing.samples``).
        domain: the range of sample operands: ``(low, high)``, "bool", "int" or "complex"; or one of these
            for each operand.
        overloads: the numbers of PyTorch's overloads, one digit each. Digit i is the overload for a plain number as operand i,
            the last digit the overload for array operands only. If digit i differs from the last one, PyTorch passes the
            number as a parameter, without an edge.
        declared: the kind, the function and the options of the declaration.
        listed: whether it is in ``TABLE``; primitives made by ``chainrule.primitive`` are not.
        tied: whether cotangents that are recorded stay connected to the operands, with derivative 0, as in PyTorch.
        accepts: the kinds of dtypes (as in ``dtype.kind``) that the operation accepts.
        c_op: the C form of the primitive (``Op`` of native/primitive.c); unset until C needs it.
        structure: the sparsity structure of the local Jacobian: a word or subscripts (listed in ``rules.structure``), a
            function from the parameters to these, or one of them for each operand.
        moves: whether the value only moves elements. Then applying it to indices shows where each element goes.
        view: whether the result is a view of the operand.
        naming: PyTorch's name for the node: a text, or a function of the parameters (and the node).
        promotion: "common" (to one dtype), "float" (and integers to the default float), "comparison" (numbers keep their
            values) or "none".
        remedy: how to avoid a NaN of the operation: a text, or a function from the values of the operands (None where one is
            unknown) to a text. The text is empty where the values are not the cause.
        on_bools: the error message for booleans, if ``accepts`` excludes them.
    """

    __slots__ = (
        "_texts",
        "accepts",
        "aliases",
        "batch",
        "c_op",
        "declared",
        "differentiable",
        "doc",
        "domain",
        "function",
        "jvp",
        "kind",
        "listed",
        "moves",
        "name",
        "naming",
        "needs_avals",
        "on_bools",
        "operands",
        "outputs",
        "overloads",
        "parameters",
        "partials",
        "promotion",
        "pullback",
        "reads",
        "remedy",
        "required",
        "samples",
        "save_from",
        "save_users",
        "saves",
        "shared",
        "structure",
        "tied",
        "ufunc",
        "value",
        "variadic",
        "view",
        "vjps",
    )  # fmt: skip

    bind: AnyFunction  # set by tape.dispatch, which finds the interpreter of the operands

    def __init__(
        self,
        function: AnyFunction,
        kind: str,
        *,
        name: str = "",
        doc: str = "",
        value: AnyFunction | None = None,
        ufunc: AnyFunction | None = None,
        outputs: Sequence[str] = ("out",),
        aliases: Mapping[str, str] | None = None,
        formula: Mapping[str, str] | str | None = None,
        samples: Any = None,
        domain: Any = None,
        promotion: str = "common",
        view: bool = False,
        moves: bool = False,
        structure: Any = "",
        naming: str | Callable[..., str] | None = None,
        remedy: str | Callable[..., str] = "",
        on_bools: str = "",
        overloads: str = "",
        accepts: str = "biufc",
        listed: bool = True,
        tied: bool = False,
    ) -> None:
        if type(self) is Primitive:
            object.__setattr__(self, "__class__", OpenRow)  # until it is in the table
        code = code_of(function)
        positional = code.co_varnames[: code.co_argcount]
        self.variadic = bool(code.co_flags & 0x04)  # *args
        if self.variadic:
            positional = (*positional, "*" + code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        self.name = name or function.__name__.rstrip("_")
        self.doc = doc or function.__doc__ or ""
        self.kind = kind
        self.ufunc = ufunc if isinstance(ufunc, np.ufunc) else value if isinstance(value, np.ufunc) else None
        self.value = value or ufunc or function
        self.operands = positional
        self.parameters = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        self.required = tuple([name for name in self.parameters if name not in (function.__kwdefaults__ or {})])
        self.outputs = tuple(outputs)
        self._texts: dict[str, str | None] = self.for_each_operand(formula)
        self.samples = samples
        self.domain = domain
        self.promotion = promotion
        self.view = view
        self.moves = moves
        self.structure: Any = structure or ("selection" if moves else "dense")
        self.naming = naming
        self.remedy = remedy
        self.on_bools = on_bools
        self.overloads = overloads
        self.accepts = accepts
        self.listed = listed
        self.tied = tied
        self.vjps: dict[str, Rule | unsupported] = {}
        self.reads: dict[str, tuple[str, ...]] = {}
        self.shared: tuple[str, Rule] | None = None
        self.partials: dict[str, Cell] = {}
        self.saves: tuple[str, ...] = ()
        self.save_users: tuple[tuple[int, ...] | None, ...] = ()
        self.save_from: tuple[int, ...] = ()
        self.needs_avals = False
        self.differentiable = True
        self.declared: tuple[AnyFunction, AnyFunction, Params] = _UNSET
        self.function: AnyFunction = _UNSET  # the user function, set by `op`
        self.jvp: AnyFunction = _UNSET
        self.batch: AnyFunction = _UNSET
        self.pullback: AnyFunction = _UNSET
        names = {"x": "self", "y": "other", "out": "result"}
        names.update(aliases or {})
        self.aliases = names

    def names_read(self, rule: Rule | CodeType) -> tuple[str, ...]:
        """Return the names that a rule reads: its parameters, and for ``**params`` the operation's parameters not among them."""
        code = rule if isinstance(rule, CodeType) else code_of(rule)
        names = argument_names(code)
        rest = self.required if code.co_flags & inspect.CO_VARKEYWORDS else ()
        return (*names, *[name for name in rest if name not in names])

    def for_each_operand(self, cells: Any) -> dict[str, Any]:
        """Return a per-operand declaration as a dict; with one operand, the declaration may come without the name."""
        if cells is None:
            return {}
        if isinstance(cells, (dict, Mapping)):
            return dict(cells)
        if len(self.operands) > 1:
            raise TableError(f"primitive {self.name}: say for which operand {cells!r} is, as in {{'x': ...}}")
        return {self.operands[0]: cells}

    def __setattr__(self, attribute: str, content: object) -> None:
        if attribute not in _MUTABLE_ATTRIBUTES:
            raise TableError(f"primitive {self.name} is complete: its {attribute} cannot be replaced")
        object.__setattr__(self, attribute, content)

    @property
    def formula(self) -> dict[str, str]:
        rule_text = importlib.import_module("chainrule._src.rules.rule_text")  # parses source text, for explanations
        for operand, rule in self.vjps.items():
            if operand not in self._texts and not isinstance(rule, unsupported):
                partial = self.partials.get(operand)
                rest = self.names_read(rule)[len(argument_names(rule)) :]
                self._texts[operand] = (
                    rule_text.vjp_text(rule, rest, self.shared) if partial is None else rule_text.partial_text(partial)
                )
        return {operand: text for operand, text in self._texts.items() if text is not None}

    def __call__(self, *operands: Any, **params: object) -> Any:
        return Primitive.bind(self, operands, params)

    def __repr__(self) -> str:
        return f"<primitive {self.name} ({self.kind})>"

    def __reduce__(self) -> Any:
        if not self.listed:
            raise TypeError(f"primitive {self.name} belongs to a function of yours and cannot be copied or pickled")
        return (_find, (self.name,))

    def node_name(self, params: Params, node: Any = None) -> str:
        """Return PyTorch's node name, such as ``ExpBackward0``; ``naming`` may read the parameters and the node."""
        if self.naming is None:
            return (
                f"{to_camel_case(self.name)}Backward{self.overloads[self.number_among(node)] if self.overloads else 0}"
            )
        if isinstance(self.naming, str):
            return self.naming
        name = self.naming(params) if self.naming.__code__.co_argcount == 1 else self.naming(params, node)
        return name if name[-1:].isdigit() or name == "CopySlices" else name + "Backward0"

    def number_among(self, node: Any) -> int:
        """Return the index of the operand that is a plain number with an overload of its own, or −1."""
        saved = dict(zip(self.saves, node.saved, strict=False))
        for i, (operand, digit) in enumerate(zip(self.operands, self.overloads, strict=False)):
            if node.edges[i] is None and digit != self.overloads[-1] and not hasattr(saved.get(operand), "dtype"):
                return i
        return -1

    def set_vjps(
        self,
        rules: Mapping[str, Rule | unsupported],
        reads: Mapping[str, tuple[str, ...]] | None = None,
        shared: Mapping[str, Rule] | None = None,
    ) -> None:
        """Set the VJPs, and derive the values to save from the names that the rules read (their parameters)."""
        for operand in rules:
            if operand not in self.operands:
                raise no_operand(self.name, operand)
        ruled = {operand: rule for operand, rule in rules.items() if callable(rule)}
        reads = reads or {operand: argument_names(rule) for operand, rule in ruled.items()}
        for name, rule in (shared or {}).items():
            self.shared = (name, rule)
            if not any(name in names for names in reads.values()):
                raise TableError(f"primitive {self.name}: no rule reads {name!r}, which is declared as shared")
            reads = {
                operand: tuple(dict.fromkeys([m for n in names for m in (argument_names(rule) if n == name else (n,))]))
                for operand, names in reads.items()
            }
        users: dict[str, list[int]] = {}
        for operand, names in reads.items():
            for name in names:
                if name in ("g", *self.parameters):
                    continue
                if name.endswith(("_shape", "_dtype")) and name[:-6] in [o.lstrip("*") for o in self.operands]:
                    self.needs_avals = True
                    continue
                if name not in (*self.operands, *self.outputs, "out"):
                    raise TableError(
                        f"primitive {self.name}: the rule for {operand!r} reads {name!r}, which does not exist"
                    )
                users.setdefault(name, []).append(self.operands.index(operand))
        self.vjps = dict(rules)
        self.reads = dict(reads)
        self.saves = tuple(users)
        self.save_from = tuple([self.operands.index(name) if name in self.operands else -1 for name in users])
        all_positions = {i for i, name in enumerate(self.operands) if name in rules}
        self.save_users = tuple(
            [None if set(positions) == all_positions else tuple(positions) for positions in users.values()]
        )


#: The attributes that may change after registration: the user's function.
_MUTABLE_ATTRIBUTES = frozenset({"function"})


class OpenRow(Primitive):
    """A primitive that is being filled in, or is never registered; its attributes can be set."""

    __slots__ = ()
    __setattr__ = object.__setattr__  # type: ignore[assignment]


#: Every primitive by name: filled by the decorators of ``kinds``, read by tests, explain and the documentation.
TABLE: OpRegistry[Primitive] = OpRegistry()


def _find(name: str) -> Primitive:
    return TABLE[name]


def register(prim: Primitive) -> Primitive:
    """Check that a primitive is complete, add it to ``TABLE`` and freeze its attributes."""
    if prim.listed and TABLE.holds(prim.name):
        raise TableError(f"primitive {prim.name} is in the table already")
    if prim.kind != "discrete":
        for attribute in ("pullback", "jvp", "batch"):
            if getattr(prim, attribute) is None:
                raise TableError(f"primitive {prim.name}: no {attribute}; write one, or unsupported('why')")
    for operand in prim._texts:
        if operand not in prim.vjps:
            raise TableError(f"primitive {prim.name}: a formula for {operand!r}, for which it has no rule")
    if not prim.doc and prim.listed:
        raise TableError(f"primitive {prim.name}: no docstring")
    if prim.listed:
        TABLE[prim.name] = prim
    prim.__class__ = Primitive
    return prim


def raise_unsupported(prim: Primitive, column: str, cell: unsupported) -> AnyFunction:
    """Return a function that raises with the reason of an ``unsupported`` rule, to be used in the rule's place."""

    def raise_unsupported(*args: object, **kwargs: object) -> NoReturn:
        raise errors.unsupported_rule(prim.name, column, cell.why)

    return raise_unsupported
