"""Random programs in the C fast path and in Python: the same bits, graphs, source locations, warnings and errors.

Every second program consists of operations in C: arithmetic of a few shapes and layouts, with signed zeros, infinities and
nans, and first and second derivatives. The others are those of the other modes.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

import chainrule as cr
from chainrule._src.tape.eager import LOOPS
from chainrule._src.tape.node import Leaf

from . import making
from .judging import Failure, Outcome
from .making import Statement

SHAPES = [
    (),
    (1,),
    (2,),
    (7,),
    (33,),
    (3, 4),
    (1, 4),
    (3, 1),
    (2, 3, 4),
    (4,),
    (0,),
    (600,),
    (40, 50),
    (1, 1),
    (8, 1),
    (120, 90),
]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 1e-40, -1.0, 1.0, 2.0]
UNARY = (
    "neg abs square sqrt reciprocal rsqrt exp exp2 log log1p log2 sigmoid "
    "sin cos tan tanh sinh cosh asinh atan erf expm1 relu sign floor positive"
)
BINARY = "add sub mul div pow maximum minimum atan2 hypot fmod remainder logaddexp xlogy"
NUMBERS = ["2", "0.5", "-1.0", "0", "1e39", "3", "-0.0", "1", "float('nan')", "10**400", "True", "np.float64(1.5)"]
NUMBERS += ["np.float32(0.1)", "np.float64(1e39)", "np.int64(3)", "np.float16(0.1)"]
SIGNS = ["+", "-", "*", "/", "+", "*", "-", "**"]
MOVES = [
    "{a}.sum()", "{a}.mean()", "{a}.sum(-1)", "{a}.sum(0, keepdim=True)", "{a}.mean(0)", "{a}.reshape(-1)", "{a}.transpose(-1, 0)",
    "{a}[0]", "{a}[..., 1:]", "{a}[None]", "{a}[-1:]", "{a} @ {b}", "{a}.softmax(-1)", "{a}.log_softmax(0)", "torch.stack([{a}, {a}])",
    "torch.cat([{a}, {b}])", "{a}.unsqueeze(0)", "{a}.squeeze()", "{a}.flatten()", "{a}.permute(*range({a}.ndim))[...]", "{a}.T",
    "torch.where({a} > 0, {a}, {b})", "{a}.clamp(-1, 1)", "{a}.expand(2, *{a}.shape)", "{a}.detach()", "({a} > {b}).sum()",
]  # fmt: skip
NUMPY_MOVES = [
    "np.sum({a})", "np.sum({a}, axis=0)", "np.sum({a}, -1, keepdims=True)", "{a}.sum(axis=-1)", "{a}.mean()", "np.mean({a}, axis=0)",
    "np.std({a})", "np.var({a}, axis=-1)", "np.max({a})", "np.min({a}, axis=0)", "np.prod({a})", "np.cumsum({a})", "np.diff({a})",
    "np.ptp({a})", "np.reshape({a}, (-1, 1))", "{a}.reshape(-1)", "{a}.reshape(-1, order='F')", "{a}.ravel()", "np.ravel({a}, order='K')",
    "{a}.T", "np.transpose({a})", "np.swapaxes({a}, 0, -1)", "np.moveaxis({a}, 0, -1)", "np.expand_dims({a}, 0)", "np.squeeze({a})",
    "np.flip({a})", "np.roll({a}, 1)", "np.roll({a}, -2, axis=0)", "np.stack([{a}, {b}])", "np.stack(({a}, {c}), axis=-1)",
    "np.concatenate([{a}, {b}])", "np.concatenate([{a}, {c}], axis=0)", "np.vstack([{a}, {b}])", "np.hstack([{a}, 1.5])",
    "np.append({a}, {b})", "np.dot({a}, {b})", "np.dot({c}, {a})", "{a} @ {b}", "{c} @ {a}", "np.inner({a}, {b})",
    "np.outer(np.ravel({a})[:50], {b}[:50])",
    "np.vdot({a}, {b})", "np.tensordot({a}, {b}, 1)", "np.einsum('...,...->...', {a}, {b})", "np.einsum('i,j->ij', {a}[:50], {b}[:50])",
    "np.einsum('ij,j->i', {a}, {b})", "np.where({a} > 0, {a}, {b})", "np.where({c} > 0, {a}, 0.0)", "np.clip({a}, -1, 1)",
    "np.clip({a}, None, {b})", "np.trace({a})", "np.diag({a}[:50])", "np.diagonal({a})", "np.tril({a})", "np.triu({a}, 1)",
    "np.pad({a}, 1)",
    "np.linalg.norm({a})", "np.linalg.norm({a}, axis=-1)",
    "np.linalg.solve({a}[:40] @ {a}[:40].T + 2 * np.eye(len({a}[:40])), {a}[:40])",
    "np.linalg.inv({a}[:40] @ {a}[:40].T + np.eye(len({a}[:40])))", "np.linalg.det({a} @ {a}.T)", "{a} * {c}", "{c} - {a}", "{a} / {c}",
    "np.multiply({a}, {c})", "np.arctan2({c}, {a})", "{a} * np.float64(1.5)", "np.float32(2) - {a}", "np.float64(-0.0) * {a}", "{a}[0]",
    "{a}[-1]", "{a}[1:]", "{a}[::-1]", "{a}[None]", "{a}[..., 0]", "{a}[0, 1]", "{a}[:, None]", "{a}[1, ...]", "{a}[True]", "{a}[[0]]",
    "{a}[()]", "{a}[9]", "{a}[0:0]", "{a}.copy()", "np.copy({a}, order='F')", "{a}.flatten()", "{a}.transpose()", "{a}[0].reshape(1)",
    "{a}[0][None] + {b}", "{a}.squeeze()", "{a}.swapaxes(0, -1)", "np.kron({a}[:5], {b}[:5])", "np.cross({a}, {b})", "np.atleast_2d({a})",
    "np.broadcast_to({a}, (2, *{a}.shape))", "{a}[[1, 0]]", "{a}[[0]]", "{a}[np.array([[0, -1]])]", "{a}[:, [0]]", "{a}[np.arange(2), :]",
]  # fmt: skip
MOVES += [
    "torch.where({c}, {a}, {b})", "torch.where({c}, {a}, 0.5)", "torch.where({c}, -0.0, {a})", "torch.where({a} > 0, {a}, 1e39)",
    "torch.clamp({a}, {n}, 2.0)", "{a}.clamp(min={n})", "{a}.clamp(max=0.5)", "torch.clamp({a}, {b}, None)",
    "torch.clamp({a}, min={b}, max={a})",
    "torch.addcmul({a}, {b}, {a}, value={n})", "torch.addcmul({a}, {b}, {b})", "torch.addcdiv({a}, {b}, {a}, value=0.5)",
    "torch.lerp({a}, {b}, 0.3)",
    "torch.lerp({a}, {b}, {a})", "torch.add({a}, {b}, alpha={n})", "torch.sub({a}, {b}, alpha=2)", "{a}.sub({b}, alpha=1)",
    "torch.pow({a}, {n})",
    "torch.div({a}, {b})", "{a}.pow({b})", "F.softplus({a})", "F.softplus({a}, 2, 5)", "F.gelu({a})", "F.gelu({a}, approximate='tanh')",
    "F.silu({a})",
    "F.leaky_relu({a}, 0.2)", "F.elu({a}, 0.7)", "F.logsigmoid({a})", "F.hardtanh({a})", "F.mish({a})", "F.relu({a})", "F.selu({a})",
    "{a}.sum(0)", "{a}.sum((-2, -1))", "{a}.sum(-1, keepdim=True)", "{a}.mean(-1)", "{a}.mean((0, 1), keepdim=True)", "{a}.softmax(0)",
    "{a}.log_softmax(-1)",
    "F.softmax({a}, dim=-1)", "torch.stack([{a}, {a}, {b}])", "torch.stack([{a}, {a}], -1)", "torch.cat([{a}, {a}], -1)",
    "torch.cat(({a}, {b}, {a}), dim=0)",
    "torch.stack([{a}])", "{a}.amax(-1)", "{a}.var(-1)", "{a}.isnan()", "({c} & {c}) | ~{c}", "{a} == {b}", "({a} >= {n})", "{a} != {a}",
    "({a} < {b}).float() * {a}", "{a}.detach() * 2 + {b}.detach()", "{c} ^ ({a} <= {b})", "torch.logical_not({a})",
    "{a}.long() + {b}.long()", "torch.maximum({a}, {b})", "{a}[0]", "{a}[-1]",
    "{a}[1:]", "{a}[::2]", "{a}[::-1]", "{a}[None]", "{a}[..., 0]", "{a}[0, 1]", "{a}[0:0]", "{a}[1, ..., None]", "{a}[()]", "{a}[9]",
    "{a}[True]", "{a}[[1, 0]]", "{a}[torch.tensor([0, -1])]", "{a}[:, torch.tensor([[1], [0]])]", "{a}[np.array([0, 0])]",
    "{a}[torch.tensor([7])]", "{a}[..., [0]]", "{a}[0, [0]]", "{a}[torch.tensor([1])] * {a}[1:]",
    "{a}.chunk(2)[0]", "{a}.split(1)[-1]", "{a}.split(2, -1)[0]", "{a}.unbind()[-1]", "{a}.chunk(2, dim=-1)", "{a}.split(1)[0].split(1)",
    "{a}.amax()", "{a}.amin(0, keepdim=True)", "{a}.max()", "{a}.max(0)[0]", "{a}.var()", "{a}.std(-1)", "{a}.prod(0)", "{a}.norm()",
    "{a}.logsumexp(-1)", "{a}.cumsum(0)", "{a}.cumprod(-1)", "{a}.flip(0)", "{a}.tril()", "{a}.triu(1)", "{a}.diagonal()", "{a}.clone()",
    "{a}.ravel()", "{a}.nan_to_num()", "{a}.round(decimals=1)", "{a}.logit(0.1)", "torch.dot({a}, {b})", "torch.mm({a}, {b})",
    "torch.mv({a}, {b})", "{b} @ {a}", "torch.linalg.vector_norm({a}, 1)", "torch.diag_embed({a})",
]  # fmt: skip
WRITES = [
    "{a}.add_(1)", "{a}.mul_({b})", "{a}[...] = 2", "{a} += {b}", "{a}.zero_()", "{a}.add_({b}, alpha={n})", "{a} -= 0.5", "{a} *= {a}",
    "{a} /= {b}",
    "{a}.copy_({b})", "{a}.fill_({n})", "{a}.sub_({b})", "{a}.div_(3)", "{a}.relu_()", "{a}.exp_()", "{a}.clamp_(0, 1)", "{a}.pow_(2)",
    "{a}.neg_()", "{a}.sigmoid_()",
    "{a}.addcmul_({b}, {b}, value=0.5)", "{a}.lerp_({b}, 0.25)", "{a}.abs_()", "{a}.copy_(3.0)", "{a}.eq_({b})", "{a}.maximum_({b})",
    "{a}[0].mul_(2)", "{a}[..., 1:].add_({b}[..., 1:])", "{a}[0] = {b}[-1]",
    "{a}.chunk(2)[0].mul_(2)", "{a}.clone().unbind()[0].add_(1)",
]  # fmt: skip
MODES = [
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.inference_mode()",
    "torch.no_grad()",
    "np.errstate(all='raise')",
]
USES = ["{a}.register_hook(lambda g: g * 2)", "{a}.retain_grad()", "{a}.register_hook(lambda g: seen.append(g.sum()))"]


def leaf(seed: int, shape: tuple[int, ...], dtype: str, order: str, face: Any, requires_grad: bool) -> Any:
    """Return an input with a few special numbers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(dtype)
    if seed % 3 == 0 and x.size:
        x.reshape(-1)[rng.integers(x.size)] = rng.choice(SPECIAL)
    if order == "F":
        x = np.asfortranarray(x)
    elif order == "strided" and x.ndim:
        x = np.repeat(x, 2, axis=-1)[..., ::2]
    if face == "plain":
        return x
    tensor = cr.from_numpy(x).requires_grad_(requires_grad)
    return cr.Array(tensor) if face == "array" else tensor


def program(seed: int) -> list[Statement]:
    if seed % 2:
        made = [making.numpy_program, lambda s: making.torch_program(cr, s), lambda s: making.plain_program(cr, s)][
            seed // 2 % 3
        ](seed)
        return [Statement("input", f"# {seed}"), *made]
    rng = random.Random(seed)
    arrays = rng.random() < 0.5
    dtype = rng.choice(["f4", "f8"])
    statements = [Statement("input", f"# {seed}"), Statement("input", "seen = []")]
    shapes = rng.sample(SHAPES, rng.choice([1, 2, 3]))
    names = [f"x{i}" for i in range(3)]
    for i, name in enumerate(names):
        order = rng.choice(["C", "C", "C", "F", "strided"])
        own = dtype if rng.random() < 0.95 else "f4"
        about = (seed * 7 + i, rng.choice(shapes), own, order, "array" if arrays else "tensor", rng.random() < 0.75)
        statements.append(Statement("input", f"{name} = leaf{about}"))
    plain = (
        seed,
        rng.choice(shapes),
        dtype if rng.random() < 0.9 else "i8",
        rng.choice(["C", "F", "strided"]),
        "plain",
        False,
    )
    statements.append(Statement("input", f"k = leaf{plain}"))
    for i in range(rng.randint(1, 12)):
        a, b = rng.choice(names[-5:]), rng.choice(names)
        if arrays and rng.random() < 0.6:
            text = rng.choice(NUMPY_MOVES).format(a=a, b=b, c="k")
            kind, text = "numpy", f"({text}, {text}, {text})[-1]"  # a path is cached when the same call occurs again
        else:
            kind, text = _step(rng, a, b, arrays)
        if rng.random() < 0.1:  # in a mode, or in a function that is differentiated by hand
            mode = rng.choice(MODES)
            text = "\n".join(
                [
                    f"with {mode}:",
                    *[f"    {line}" for line in (text if kind in ("writes", "uses") else f"v{i} = {text}").split("\n")],
                ]
            )
            statements.append(Statement("modes", text))
            names += [] if kind in ("writes", "uses") else [f"v{i}"]
        elif kind in ("writes", "uses"):
            statements.append(Statement(kind, text))
        else:
            names.append(f"v{i}")
            statements.append(Statement(kind, f"v{i} = {text}"))
    return [*statements, *_ends(rng, names)]


def _step(rng: random.Random, a: str, b: str, arrays: bool) -> tuple[str, str]:
    k = rng.random()
    number = rng.choice(NUMBERS)
    if k < 0.22:
        name = rng.choice(UNARY.split())
        numpy = {"neg": "negative", "asinh": "arcsinh", "atan": "arctan"}.get(name, name)
        if arrays or rng.random() < 0.15:
            return "unary", f"np.{numpy}({a})" if hasattr(np, numpy) else f"torch.{name}({a})"
        return "unary", f"torch.{name}({a})" if rng.random() < 0.6 else f"{a}.{name}()"
    if k < 0.32:
        return "binary", f"torch.{rng.choice(BINARY.split())}({a}, {b})"
    if k < 0.42:
        return "operator", f"{a} {rng.choice(SIGNS)} {b}"
    if k < 0.5:
        return "number last", f"{a} {rng.choice(SIGNS)} {number}"
    if k < 0.56:
        return "number first", f"{number} {rng.choice(SIGNS)} {a}"
    if k < 0.6:
        return (
            "ufunc",
            f"np.{rng.choice(['add', 'multiply', 'subtract', 'divide', 'power'])}({rng.choice([b, number])}, {a})",
        )
    if k < 0.88:
        return "move", rng.choice(MOVES).format(a=a, b=b, c=f"({b} > 0)", n=number)
    if k < 0.97:
        return "writes", rng.choice(WRITES).format(a=a, b=b, n=number)
    return "uses", rng.choice(USES).format(a=a)


def _ends(rng: random.Random, names: list[str]) -> list[Statement]:
    parts = " ".join(f"{name}," for name in rng.sample(names, min(len(names), 5)))
    total = f"total = sum([v.sum() for v in ({parts}) if v.requires_grad], torch.zeros((), dtype=torch.float64, requires_grad=True) * 1)"
    inputs = "wanted = [x.tensor if hasattr(x, 'tensor') else x for x in (x0, x1, x2) if x.requires_grad]"
    start = [Statement("end", f"{total}\n{inputs}")]
    k = rng.random()
    if k < 0.35:
        return [*start, Statement("end", "total.backward()")]
    if k < 0.45:
        return [*start, Statement("end", "total.backward(retain_graph=True)"), Statement("end", "total.backward()")]
    if k < 0.6:
        return [*start, Statement("end", "vg = torch.autograd.grad(total, wanted, allow_unused=True)")]
    second = "vgg = torch.autograd.grad(sum([g.sum() for g in vg if g is not None and g.requires_grad]), wanted, allow_unused=True)"
    return [
        *start,
        Statement("end", "vg = torch.autograd.grad(total, wanted, create_graph=True, allow_unused=True)"),
        Statement("end", second),
    ]


def against_python(program: list[Statement]) -> Outcome:
    """Run a program in both ways, and compare all its effects."""
    if LOOPS is None:
        raise RuntimeError("the extension is not there")
    before = LOOPS.switch_on(False)
    try:
        expected = _run(program)
        LOOPS.switch_on(True)
        found = _run(program)
    finally:
        LOOPS.switch_on(before)
    for statement, x, y in zip(program, expected, found, strict=True):
        if x != y:
            return Outcome([], [], Failure(statement.kind, statement.text, _difference(x, y)))
    raised = [s for s, x in zip(program, expected, strict=True) if x[0]]
    return Outcome([s for s, x in zip(program, expected, strict=True) if not x[0]], raised)


def _difference(x: Any, y: Any) -> str:
    found = [f"{name}: Python {a}, C {b}" for name, a, b in zip(("error", "warnings"), x, y, strict=False) if a != b]
    ours = dict(y[2])
    for name, a in x[2]:
        b = ours.get(name)
        if a != b and isinstance(a, tuple) and isinstance(b, tuple):
            found += [f"{name}: Python {p}, C {q}" for p, q in zip(a, b, strict=False) if p != q]
        elif a != b:
            found.append(f"{name}: Python {a}, C {b}")
    return "; ".join(found)[:600]


def _run(program: list[Statement]) -> list[tuple[Any, ...]]:
    """Return for each statement the error, the warnings, and its variables; at the end also all gradients."""
    cr.manual_seed(7)
    np.random.seed(7)
    env: dict[str, Any] = {"torch": cr, "F": cr.nn.functional, "np": np, "log": [], "leaf": leaf, "seen": []}
    found = []
    for i, statement in enumerate(program):
        known = {name: id(x) for name, x in env.items()}
        error = ""
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            try:
                exec(compile(statement.text, f"<statement {i}>", "exec"), env)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
        last = i == len(program) - 1
        left = [
            (name, _about(x))
            for name, x in env.items()
            if name[0] in "vxts" and name != "torch" and (last or known.get(name) != id(x))
        ]
        found.append((error, sorted(f"{w.category.__name__}: {w.message}" for w in noted), left))
    return found


def _about(x: Any, depth: int = 0) -> Any:
    """Return all observable properties of a value."""
    tensor = getattr(x, "_tensor", x)
    if isinstance(x, (list, tuple)) and depth < 2:
        return [_about(item, depth + 1) for item in x]
    if isinstance(tensor, np.ndarray):
        return _bits(tensor)
    if not isinstance(tensor, cr.Tensor):
        return type(x).__name__ if callable(x) or x is None else repr(x)
    cut = tensor._cut
    return (
        type(x).__name__, _bits(tensor._raw), None if cut is None else (cut.kind, getattr(cut.where, "lasti", None)),
        tensor._view is not None and [(p.name, repr(d)) for p, d in tensor._view.steps], None if tensor.is_inference() else tensor._version,
        None if tensor._grad is None else _about(tensor._grad, depth + 1), _graph(tensor._edge),
    )  # fmt: skip


def _bits(x: Any) -> Any:
    if type(x) is not np.ndarray:
        return type(x).__name__
    bits = np.where(np.isnan(x), np.abs(np.nan), x).tobytes() if x.dtype.kind == "f" else x.tobytes()
    return x.dtype.str, x.shape, x.strides if x.size else (), x.flags.writeable, hash(bits)


def _graph(root: Any) -> Any:
    """Return the nodes behind an edge, each with its type, source location, and numbered edges."""
    if root is None:
        return None
    numbers, nodes, notes = {root: 0}, [root], []
    for edge in nodes:
        for below in edge.edges:
            if below is not None and below not in numbers:
                numbers[below] = len(nodes)
                nodes.append(below)
        place = (edge.code.co_filename, edge.lasti) if getattr(edge, "code", None) is not None else None
        if type(edge) is Leaf:
            notes.append(("leaf", place, edge.added))
        else:
            prim = getattr(edge, "prim", None)
            saved = [_bits(s) if isinstance(s, np.ndarray) else type(s).__name__ for s in getattr(edge, "saved", ())]
            avals = repr(getattr(edge, "in_avals", None))
            notes.append(
                (prim and (prim.name, prim.node_name(edge.params, edge)), place, saved, avals, edge.hooks is None)
            )
        notes.append([numbers.get(below) for below in edge.edges])
    order = sorted(range(len(nodes)), key=lambda i: nodes[i].seq)
    return notes, order
