"""Judge the results of programs, by comparison with PyTorch for each statement, or by finite differences and NumPy."""

import ast
import random
import re
import signal
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .making import Statement, dtype_of, text_of

# The differences from PyTorch that docs/compat.md documents: the start of the difference, a pattern for the statement
# and the difference, and the entry of that page (a test checks that it exists).
_DERIVATIVES = "derivatives that are missing or wrong in PyTorch"
_KERNELS = "operands of several dtypes, and dtypes that PyTorch has no kernel for"
DOCUMENTED = [
    ("only PyTorch", "is a view and its base", "writing one of several views (`unbind`, `split`, `chunk`, iteration)"),
    ("only PyTorch", "A view was created in (no_grad|inference)", "views made in `no_grad`"),
    ("requires_grad False for True", "no_grad|set_grad_enabled", "views made in `no_grad`"),
    ("only PyTorch", "returned an invalid gradient", "shapes changed in `no_grad` (`transpose_`, `t_`, `squeeze_`)"),
    ("only PyTorch", "derivative for aten::floor_divide", "`x // y`, `floor_divide`"),
    (
        "only PyTorch",
        "derivative for (aten::\\w+|'_\\w+_backward')|forward AD|forward mode|[dD]ouble backward|"
        "does not support automatic differentiation",
        _DERIVATIVES,
    ),
    (
        "only PyTorch",
        "leaf node was passed|non-empty TensorList|ZeroTensors",
        _DERIVATIVES,
    ),
    ("only PyTorch", "match the broadcast shape", _DERIVATIVES),
    ("nan for numbers", "", _DERIVATIVES),
    ("only PyTorch", "not implemented for '", _KERNELS),
    (
        "only PyTorch",
        "expected scalar type|expected dtype|the same dtype|Expected both inputs to be Half, Float or Double",
        _KERNELS,
    ),
    (
        "only PyTorch",
        "modified by an inplace operation|detached in-place",
        "overwriting a value that only one library's rule saves",
    ),
    (
        "only PyTorch",
        "vmap: |[bB]atching rule|functorch|wrapper tensor",
        "operations and writes that PyTorch's `vmap` rejects",
    ),
    (
        "only PyTorch",
        r"34359738\d\d\d|expected to be in range of \[-1, 0\], but got \[-1\]",
        "operations and writes that PyTorch's `vmap` rejects",
    ),
    ("dtype float32 for float64", r"torch\.where\([\s\S]*vmap", "operations and writes that PyTorch's `vmap` rejects"),
    ("shape", r"for \(\d{9,}", "operations and writes that PyTorch's `vmap` rejects"),
    ("shape", "(vmap|f\\d+).*squeeze_", "operations and writes that PyTorch's `vmap` rejects"),
    ("only ours", "dynamic shape", "results whose shape depends on the example"),
    (
        "only PyTorch",
        "unsupported operation: some elements|single memory location",
        "operands that overlap the target (`x[1:] = x[:-1]`)",
    ),
    ("only ours", "more than one element of the written-to tensor", "`x.expand(…)[k:] = v` for an expanded `x`"),
    ("only PyTorch", "Inference tensors cannot|inference tensor", "`inference_mode`, `is_inference_mode_enabled`"),
    (
        "only ours",
        "Inplace update to inference tensor|Inference tensors cannot be saved",
        "`inference_mode`, `is_inference_mode_enabled`",
    ),
    ("only PyTorch", "must be Tensor, not|invalid combination of arguments", "numbers in place of tensors"),
    ("only ours", "index \\d+ is out of bounds .* (0[,)]|size 0)", "indices into empty arrays"),
    (
        "only PyTorch",
        "Tensor dimension is 1, expected 2|N must be greater than 1|length must be non-negative|index_copy_.*slice shape"
        "|Index to scalar|index_put_.*cannot be broadcast",
        "shapes that only PyTorch rejects",
    ),
    ("grad: requires_grad True for False", "", "whether a derivative of zero is a constant"),
    ("requires_grad", "torch.(func|vmap|autograd)", "whether a derivative of zero is a constant"),
    ("only PyTorch", "'NoneType' object has no attribute 'clone'", "rules and hooks that no gradient reaches"),
    ("only PyTorch", "does not require grad", "whether a derivative of zero is a constant"),
    ("only", "through the graph a second time", "a second backward pass"),
    ("only ours", "modified by an inplace operation", "overwriting a value that only one library's rule saves"),
    ("only ours", "not implemented for '(Bool|Complex)|contracted dimensions need to match", _KERNELS),
    ("only PyTorch", "with a bool tensor is not supported|MKL FFT error", _KERNELS),
    ("only PyTorch", "object of scalar type|did not match (Double|Float)", _KERNELS),
    ("zeros for nothing", "", "whether a derivative of zero is a constant"),
    ("nothing for zeros", "", "whether a derivative of zero is a constant"),
    ("only", "Output \\d of \\w+ is a view", "writing one of several views"),
    ("only ours", "[dD]ifferentiated Tensors does not require grad", "a view taken before"),
    ("requires_grad False for True", r"requires_grad_\(\)", "a view taken before"),
    ("values", r"functional\.\w+\([\s\S]*func\.(jvp|jacfwd)", _DERIVATIVES),
    ("values", r"(v\d+)\.addc\w+_\((\w+, )?\1\b[\s\S]*(jacfwd|jvp|forward_ad)", _DERIVATIVES),
    ("values", r"scatter_reduce\(.*'prod'\)[\s\S]*(jvp|grad|hessian|jac|forward_ad)", _DERIVATIVES),
    ("values", r"polar\((v\d+), \1\)|sinc\(", _DERIVATIVES),
    ("dtype float32 for float64", "jvp|jacfwd|forward_ad|hessian", _DERIVATIVES),
    ("Tensor for NoneType", "forward_ad", _DERIVATIVES),
    ("values", r"(clamp|f?max(imum)?|f?min(imum)?)\([\s\S]*(forward_ad|jvp|jacfwd|hessian)", "derivatives at a bound"),
    ("values", r"\.(kthvalue|topk|mode|median|sort)\([\s\S]*(hessian|grad|jac|jvp|vjp)", "`sort`, `argsort`, `topk`"),
    ("logged: list of", "", "a hook on a view that is later written"),
    ("only", "view size is not compatible", "memory layout of gradients and results"),
]


# The same, with a pattern for the whole program.
DOCUMENTED_BEFORE = [
    (
        "ours raises RuntimeError: element 0 of tensors does not require grad",
        r"torch\.func\.",
        "whether a derivative of zero is a constant",
    ),
    (
        "ours raises RuntimeError: element 0 of tensors does not require grad",
        r"= (v\d+)(\[|\.view\()[\s\S]*= \1\.requires_grad_\(\)",
        "a view taken before",
    ),
    ("values", r"= (v\d+)(\[|\.view\()[\s\S]*\b\1 .?= [\s\S]*= \1\.requires_grad_\(\)", "a view taken before"),
    (
        "values",
        r"linalg\.(solve|inv|pinv|cholesky|qr)\([\s\S]*(reshape|flatten|ravel|contiguous)\([\s\S]*(\w_\(|\] .?= | [-+*/]= )",
        "memory layout of gradients and results",
    ),
    ("LinAlgError", r"linalg\.qr\(", "derivatives of `linalg.qr` of a singular matrix"),
    ("values", r"\.unfold\([\s\S]*(\w_\(|\] .?= | [-+*/]= )", "`Tensor.unfold`"),
    ("requires_grad", r"torch\.(func|vmap|autograd)|median\(", "whether a derivative of zero is a constant"),
    (
        "values True for False",
        r"torch\.(func|vmap|autograd)\b[\s\S]*\.requires_grad\Z",
        "whether a derivative of zero is a constant",
    ),
    ("values", r"logcumsumexp\([\s\S]*(create_graph=True|hessian|jac|functional|func\.)", _DERIVATIVES),
    ("requires_grad", r"\.requires_grad_\(\)", "a view taken before"),
    ("Tensor for NoneType", r"(unsqueeze|t|squeeze|transpose)_\(", "`Tensor._version`"),
    (
        "values",
        r"(register_hook|prehook)\([\s\S]*(\w_\(|\] .?= )",
        "a hook on a view that is later written",
    ),
    (
        "values",
        r"(register_hook|prehook)\([\s\S]*create_graph=True",
        "hooks that change gradients, in higher derivatives",
    ),
    ("values", r"torch\.polar\([\s\S]*(backward|autograd\.grad)\(", _DERIVATIVES),
    (
        "values",
        r"\[.*torch\.tensor\(.*\] .?= [\s\S]*(backward|autograd\.grad)\(",
        "assigning several values to one element",
    ),
]


_ELEMENTS = "arrays of elements that carry derivatives (`np.array([x[0], x[1]])`)"
# The same for NumPy programs, with a pattern for the error.
OF_NUMPY = [
    ("value", "has no callable \\w+ method|not supported for the input types|dtype\\('O'\\)", _ELEMENTS),
    (
        "value",
        "setting an array element with a sequence|'(float|int)' object (has no attribute '\\w+'|is not subscriptable)",
        _ELEMENTS,
    ),
    ("vmap", "setting an array element with a sequence", _ELEMENTS),
    ("value", "float\\(\\) of an array that carries a derivative", _ELEMENTS),
    ("value", r"np\.asarray\(\) would drop the derivative", "`np.array([a, b])` of arrays that carry derivatives"),
    ("value", "reduction operation '\\w+' does not have an identity|float division by zero", _ELEMENTS),
]


class Failure(NamedTuple):
    kind: str
    statement: str
    what: str

    @property
    def signature(self) -> str:
        """Return a signature that is the same for repeated occurrences of a defect: called names, and the message without numbers."""
        lines = self.statement.splitlines() or [""]
        told = "\n".join(lines[1:-1]) if lines[0].startswith("def") and len(lines) > 2 else lines[-1]
        calls = sorted(
            {name for name in re.findall(r"\.(\w+)\b|(\[[:.\w-])|( [-+*/@%&|^]=? )", told) for name in name if name}
        )
        message = re.sub(r"[-+]?[0-9][0-9.e+-]*", "N", self.what)[:100]
        return f"{self.kind}: {message} | {' '.join(c.strip() for c in calls)}"[:200]


class Outcome(NamedTuple):
    agreed: list[Statement]
    raised: list[Statement]
    failure: Failure | None = None
    documented: str = ""


class TooLong(BaseException):
    pass


@contextmanager
def within(seconds: int) -> Any:
    """Raise an error after a limit of CPU seconds."""

    def stop(*_: Any) -> None:
        raise TooLong

    before = {s: signal.signal(s, stop) for s in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(10 * seconds)  # for programs that wait
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for s, handler in before.items():
            signal.signal(s, handler)


# ---- against PyTorch


def numbers(x: Any) -> np.ndarray:
    return np.asarray(x.detach().resolve_conj().resolve_neg().numpy(force=True) if hasattr(x, "detach") else x)


def read(x: Any) -> np.ndarray:
    """Return the numbers of a PyTorch tensor, or none for views that PyTorch does not allow to read."""
    try:
        return numbers(x)
    except RuntimeError:
        return np.zeros(0)


def is_leaf(x: Any) -> bool | None:
    try:
        return x.is_leaf
    except RuntimeError:  # PyTorch: a view created in no_grad whose base was written outside
        return None


def difference(ours: Any, theirs: Any, tolerance: float) -> str:
    """Describe the difference in a few words; "" if there is none."""
    if isinstance(theirs, tuple | list):
        if not isinstance(ours, tuple | list) or len(ours) != len(theirs):
            return f"{type(ours).__name__} of {len(ours) if hasattr(ours, '__len__') else 1} for {type(theirs).__name__} of {len(theirs)}"
        return next((d for d in (difference(a, b, tolerance) for a, b in zip(ours, theirs)) if d), "")
    if (ours is None) != (theirs is None) and not np.any(numbers(theirs if ours is None else ours)):
        return "nothing for zeros" if ours is None else "zeros for nothing"
    if not hasattr(theirs, "requires_grad") and not isinstance(theirs, bool | int | float | complex | str):
        known = ours is None if theirs is None else ours is not None
        return "" if known else f"{type(ours).__name__} for {type(theirs).__name__}"
    if not hasattr(theirs, "requires_grad"):
        if type(ours) is not type(theirs):
            return f"{type(ours).__name__} for {type(theirs).__name__}"
    elif not hasattr(ours, "requires_grad"):
        return f"{type(ours).__name__} for a tensor"
    elif is_leaf(theirs) is not None:
        for name, a, b in (
            ("dtype", dtype_of(ours), dtype_of(theirs)),
            ("shape", tuple(ours.shape), tuple(theirs.shape)),
            ("requires_grad", ours.requires_grad, theirs.requires_grad),
            ("is_leaf", ours.is_leaf, is_leaf(theirs)),
        ):
            if a != b and (name in ("dtype", "shape") or np.any(numbers(theirs))):  # a zero may be a constant or not
                return f"{name} {a} for {b}"
    else:
        return ""
    a, b = numbers(ours), numbers(theirs)
    if (
        np.isnan(b).any()
        and close(np.where(np.isnan(b), b, a) if a.shape == b.shape else a, b, tolerance)
        and not close(a, b, tolerance)
    ):
        return "nan for numbers"
    return "" if close(a, b, tolerance) else f"values {a.tolist()} for {b.tolist()}"


def close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.shape != b.shape:
        return False
    if b.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    scale = max(1.0, np.max(np.abs(b[finite]), initial=0.0))
    return bool(np.all(np.abs(a[finite] - b[finite]) <= tolerance * scale))


class Shaken(ast.NodeTransformer):
    """Perturbs the numbers of a program slightly, to distinguish rounding and kinks from defects."""

    def __init__(self, seed: int, amount: float):
        self.rng, self.amount = random.Random(seed), amount

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, float) and node.value != round(node.value, 1):  # except exponents and bounds
            return ast.Constant(node.value * (1 + self.amount * self.rng.uniform(-1, 1)))
        return node


def states(lib: Any, program: list[Statement]) -> Any:
    """Run statement by statement; yield the error or None, and the variables, after each."""
    env: dict[str, Any] = {"torch": lib, "log": []}
    for statement in program:
        try:
            exec(statement.text, env)
            yield None, env
        except Exception as error:
            yield error, env


def assigned(statement: Statement) -> list[str]:
    return sorted(
        {n.id for n in ast.walk(ast.parse(statement.text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    )


def forget(env: dict[str, Any]) -> None:
    """Remove gradients and the records of hooks."""
    env["log"].clear()
    for x in env.values():
        if hasattr(x, "requires_grad") and is_leaf(x):
            x.grad = None


def gradients(env: dict[str, Any], like: dict[str, Any]) -> list[Any]:
    return [
        env[n].grad for n, x in like.items() if n[0] == "v" and n in env and hasattr(x, "requires_grad") and is_leaf(x)
    ]


def against_torch(program: list[Statement], ours: Any, torch: Any) -> Outcome:
    tolerance = 1e-4 if any("float()" in s.text or "32" in s.text for s in program) else 1e-8
    agreed, raised = [], []
    runs = zip(program, states(ours, program), states(torch, program))
    with np.errstate(all="ignore"):
        for at, (statement, (our_error, our_env), (their_error, their_env)) in enumerate(runs):
            if our_error and their_error:
                raised.append(statement)
                if "inference tensor" in str(their_error):  # PyTorch has overwritten it
                    return Outcome(agreed, raised, documented="`inference_mode`, `is_inference_mode_enabled`")
                if "backward(" in statement.text:  # chainrule then stores no gradients, and PyTorch stores some
                    forget(our_env)
                    forget(their_env)
                continue
            what = ""
            if tolerance < 1e-4 and any(
                x.dtype in (torch.float32, torch.complex64) for x in their_env.values() if hasattr(x, "grad_fn")
            ):
                tolerance = 1e-4
            if our_error or their_error:
                error = our_error or their_error
                who = "only ours raises" if our_error else "only PyTorch raises"
                what = (
                    f"{who} {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
                )
            else:
                for name in [n for n in assigned(statement) if n in their_env]:
                    what = difference(our_env[name], their_env[name], tolerance)
                    if what:
                        what = f"{name}: {what}"
                        break
                else:
                    if statement.kind == "backward":
                        what = difference(gradients(our_env, their_env), gradients(their_env, their_env), tolerance)
                        what = what and f".grad: {what}"
            if at == len(program) - 1 and not what:
                for name in [n for n in their_env if n[0] == "v" and n in our_env]:
                    try:
                        what = difference(our_env[name], their_env[name], tolerance)
                    except RuntimeError:
                        continue
                    if what:
                        what = f"at the end, {name}: {what}"
                        break
            if what:
                for start, pattern, row in DOCUMENTED:
                    if start in what and re.search(pattern, f"{with_functions(program, statement)}\n{what}"):
                        return Outcome(agreed, raised, documented=row)
                before = text_of(program[: at + 1])
                for start, pattern, row in DOCUMENTED_BEFORE:
                    if start in what and re.search(pattern, before):
                        return Outcome(agreed, raised, documented=row)
                if "values" in what and overlapping(program[: at + 1], their_env):
                    return Outcome(agreed, raised, documented="operands that overlap the target")
                if ("shape" in what or re.search(OF_ZERO, statement.text)) and at_bound(
                    statement, their_env, tolerance
                ):
                    return Outcome(agreed, raised, documented="a kink, a tie or rounding")
                if tied(program[: at + 1], torch) or shaky(program[: at + 1], torch, tolerance, what):
                    return Outcome(agreed, raised, documented="a kink, a tie or rounding")
                return Outcome(agreed, raised, Failure(statement.kind, statement.text, what))
            agreed.append(statement)
    return Outcome(agreed, raised)


def with_functions(program: list[Statement], statement: Statement) -> str:
    """Return a statement with the functions that it calls, directly or indirectly."""
    text = statement.text
    for earlier in reversed(program):
        if (name := re.match(r"def (\w+)", earlier.text)) and re.search(rf"\b{name[1]}\b", text):
            text = f"{earlier.text}\n{text}"
    return text


def overlapping(program: list[Statement], env: dict[str, Any]) -> bool:
    """Return whether a statement adds one part of some memory to another."""
    pairs = (
        m for s in program for m in re.findall(r"\b(v\d+)\b(?:.*\w_\(| ?\[.*\] .?= | [-+*/]= ).*\b(v\d+)\b", s.text)
    )
    return any(
        a == b or env[a].untyped_storage().data_ptr() == env[b].untyped_storage().data_ptr()
        for a, b in pairs
        if a in env and b in env
    )


PRECISE = {"float32": "float64", "complex64": "complex128", ".float()": ".double()"}
DOUBLE = re.compile("|".join(map(re.escape, PRECISE)))


#: functions that are discontinuous at zero and at rounding boundaries
OF_ZERO = "nonzero|argwhere|count_nonzero|sign|sgn|bool"


def at_bound(statement: Statement, env: dict[str, Any], tolerance: float) -> bool:
    """Return whether a statement selects elements by a bound that equals one of them up to rounding."""
    bounds = re.findall(r"(v\d+)(\.abs\(\))? [<>]=? (-?[0-9.]+)", statement.text)
    bounds += [(name, "", "0") for name in re.findall(rf"(v\d+)\.(?:{OF_ZERO})\(", statement.text)]
    sides = [(read(env[name]), absolute, float(bound)) for name, absolute, bound in bounds if name in env]
    return any(np.any(abs((abs(x) if absolute else x) - bound) < tolerance) for x, absolute, bound in sides)


def tied(program: list[Statement], torch: Any) -> bool:
    """Return whether one of several equal numbers is selected."""
    *_, (_, env) = states(torch, program)
    chosen = [
        env.get(name)
        for s in program
        for name in re.findall(r"(v\d+)\S*\.(?:topk|kthvalue|mode|median|sort)\(", s.text)
    ]
    return any(len(np.unique(x)) < x.size for x in map(read, [x for x in chosen if hasattr(x, "requires_grad")]))


def shaky(program: list[Statement], torch: Any, tolerance: float, what: str) -> bool:
    """Return whether PyTorch's results (or their shapes) change when the inputs change within rounding."""
    shapes = re.match(r"(at the end, )?v\d+: shape ", what)
    if not shapes and "values" not in what and "LinAlgError" not in what:
        return False
    base = None
    for seed in range(16 if shapes else 4):
        shaken = [
            Statement(s.kind, ast.unparse(Shaken(seed, tolerance * 1e-3 * (seed > 0)).visit(ast.parse(s.text))))
            for s in program
        ]
        if seed == 1 and tolerance >= 1e-4:  # repeat single-precision computations in double precision
            shaken = [Statement(s.kind, DOUBLE.sub(lambda m: PRECISE[m[0]], s.text)) for s in program]
        *_, (error, env) = states(torch, shaken)
        here = [read(x) for n, x in env.items() if n[0] in "vtf" and hasattr(x, "requires_grad")]
        here += [numbers(g) for g in [*gradients(env, env), *env.get("first", ()), *env["log"]] if g is not None]
        here = [np.array(x.shape) for x in here] if shapes else [*here, np.array(type(error).__name__)]
        if base is None:
            base = here
        elif len(here) != len(base) or not all(close(a, b, tolerance * 0.1) for a, b in zip(here, base)):
            return True
    return False


# ---- against finite differences, and one method against another


def slope(f: Callable[[float], float], h: float) -> float:
    """Return a fourth-order central difference: with h = 1e-3, truncation and rounding errors are about 1e-12."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def smooth_slope(f: Callable[[float], float]) -> float | None:
    """Return the slope, or None at a kink or if the numbers are too large."""
    far, near = 1e-3, 4e-4
    one, two = slope(f, far), slope(f, near)
    bent = [(f(h) - 2 * f(0.0) + f(-h)) / h for h in (far, near)]
    jump = (far * bent[1] - near * bent[0]) / (far - near)  # the jump of the slope: `bent` extrapolated to h = 0
    smooth = abs(one - two) <= 1e-8 * max(1.0, abs(two)) and abs(jump) <= 1e-5 * max(1.0, abs(two))
    return two if smooth and abs(two) < 1e6 else None


def against_differences(program: list[Statement], lib: Any, _: Any = None) -> Outcome:
    """Compare gradients and second derivatives of f with central differences, forward with reverse mode, and vmap with a loop."""
    env: dict[str, Any] = {"torch": lib}
    agreed: list[Statement] = []
    raised: list[Statement] = []
    with np.errstate(all="ignore"):
        for statement in program:
            exec(statement.text, env)
        f, x = env[re.findall(r"^def (\w+)", program[-1].text)[-1]], env["x"].detach()
        rng = np.random.default_rng(x.numel())
        d, e = (lib.tensor(rng.uniform(-1, 1, tuple(x.shape))) for _ in range(2))

        def gradient(at: Any) -> Any:
            at = at.detach().clone().requires_grad_()
            return lib.autograd.grad(f(at) + 0 * at.sum(), at)[0]

        def value(h: float) -> float:
            return f((x + h * d).requires_grad_()).item()

        def second() -> float:
            at = x.clone().requires_grad_()
            g = lib.autograd.grad(f(at) + 0 * at.sum(), at, create_graph=True)[0]
            return lib.autograd.grad((g * e).sum() + 0 * at.sum(), at)[0]

        def bend(h: float) -> float:
            return (gradient(x + h * d) * e).sum().item()

        again = lib.func.grad(lambda y: (lib.func.grad(f)(y) * d).sum())

        def looped(g: Any) -> Any:
            return lib.stack([g(row) for row in (x, x + 0.01 * d, x - 0.02 * e)])

        xs = lib.stack([x, x + 0.01 * d, x - 0.02 * e])
        along = smooth_slope(value)
        try:
            gradient(x)
        except RuntimeError as error:
            if "modified by an inplace" in str(error):
                return Outcome(agreed, raised, documented="a saved value was overwritten")
        checks: list[tuple[str, Any, Any, float]] = [
            ("gradient", lambda: (gradient(x) * d).sum(), lambda: along, 1e-7),
            ("jvp", lambda: lib.func.jvp(f, (x,), (d,))[1], lambda: (gradient(x) * d).sum(), 1e-9),
            ("vmap", lambda: lib.vmap(f)(xs), lambda: looped(f), 1e-9),
            ("vmap of grad", lambda: lib.vmap(lib.func.grad(f))(xs), lambda: looped(gradient), 1e-9),
        ]
        if along is not None:
            checks += [
                ("second derivative", lambda: (second() * d).sum(), lambda: smooth_slope(bend), 1e-6),
                ("jvp of grad", lambda: lib.func.jvp(lib.func.grad(f), (x,), (d,))[1], lambda: again(x), 1e-8),
            ]
        for kind, ours, expected, tolerance in checks:
            try:
                wanted = expected()
                if wanted is None:
                    continue
                wanted = numbers(wanted)
                if not np.all(np.abs(wanted) < 1e6):
                    continue
            except Exception:
                continue
            try:
                got = numbers(ours())
            except Exception as error:
                if "vmap" in kind and re.search("dynamic shape|data-dependent", str(error)):
                    raised.append(Statement(kind, ""))
                    continue
                if isinstance(error, np.linalg.LinAlgError) and "linalg.qr(" in program[-1].text:
                    return Outcome(agreed, raised, documented="factors of a singular matrix")
                if "refers to a single memory location" in str(error):
                    return Outcome(agreed, raised, documented="a write into a gradient that is expanded")
                return Outcome(
                    agreed, raised, Failure(kind, program[-1].text, f"{type(error).__name__}: {error}".splitlines()[0])
                )
            if not close(got, wanted, tolerance):
                if np.isnan(got).any() and re.search(r"linalg\.(eigvalsh|svdvals|matrix_norm)\(", program[-1].text):
                    return Outcome(agreed, raised, documented="a second derivative at equal eigenvalues")
                return Outcome(
                    agreed, raised, Failure(kind, program[-1].text, f"values {got.tolist()} for {wanted.tolist()}")
                )
            agreed.append(Statement(kind, ""))
    return Outcome(agreed, raised)


_ARRAYS_OF_ELEMENTS = re.compile(r"np\.array\(\[|= \[row\.sum\(\) for")


def against_numpy(program: list[Statement], lib: Any) -> Outcome:
    """Compare the value of f with NumPy's, and its gradient with central differences."""
    env: dict[str, Any] = {"np": np}
    agreed: list[Statement] = []
    raised: list[Statement] = []
    with np.errstate(all="ignore"):
        for statement in program:
            exec(statement.text, env)
        f, x = env["f"], env["x"]
        rng = np.random.default_rng(x.size)
        d, e = rng.uniform(-1, 1, (2, *x.shape))
        xs = np.stack([x, x + 0.01 * d, x - 0.02 * e])
        try:
            value = f(x.copy())
            along = smooth_slope(lambda h: float(f(x + h * d)))
            rows = np.array([f(row.copy()) for row in xs])
        except Exception:  # its behaviour depends on numbers: not a NumPy program for all inputs
            return Outcome(agreed, raised, documented="NumPy refuses it for numbers nearby")
        checks: list[tuple[str, Any, Any, float]] = [
            ("value", lambda: lib.func.value_and_grad(f)(x)[0], lambda: value, 1e-12)
        ]
        if along is not None:
            checks += [
                ("gradient", lambda: np.sum(lib.func.value_and_grad(f)(x)[1] * d), lambda: along, 1e-7),
                ("jvp", lambda: lib.func.jvp(f, (x,), (d,))[1], lambda: along, 1e-7),
            ]
        checks.append(("vmap", lambda: lib.vmap(f)(xs), lambda: rows, 1e-10))
        for kind, ours, expected, tolerance in checks:
            try:
                got = ours()
            except Exception as error:
                if kind == "vmap" and re.search("dynamic shape|data-dependent|vmap|all examples", str(error)):
                    raised.append(Statement(kind, ""))
                    continue
                if isinstance(error, np.linalg.LinAlgError) and close(
                    numbers(f(lib.Array(x)).tensor), np.asarray(value), 1e-12
                ):
                    return Outcome(agreed, raised, documented="nan at an edge of what has a derivative")
                for start, pattern, row in OF_NUMPY:
                    if (
                        kind == start
                        and re.search(pattern, str(error))
                        and _ARRAYS_OF_ELEMENTS.search(program[-1].text)
                    ):
                        return Outcome(agreed, raised, documented=row)
                return Outcome(
                    agreed, [], Failure(kind, program[-1].text, f"{type(error).__name__}: {error}".splitlines()[0])
                )
            wanted = expected()
            if kind != "value" and np.isnan(got).any():
                return Outcome(agreed, raised, documented="nan at an edge of what has a derivative")
            if np.all(np.abs(wanted) < 1e6) and not close(np.asarray(got), np.asarray(wanted), tolerance):
                points = {"value": x[None], "vmap": xs}.get(kind, ())
                if len(points) and all(map(is_jump, [f] * len(points), points, np.reshape(got, len(points)))):
                    return Outcome(agreed, raised, documented="a kink, a tie or rounding")
                if has_number_written(program[-1].text, x):
                    return Outcome(agreed, raised, documented="arrays without axes are values")
                if kind in ("gradient", "jvp") and spread_is_zero(program[-1].text, x):
                    return Outcome(agreed, raised, documented="the standard deviation of equal numbers")
                return Outcome(agreed, raised, Failure(kind, program[-1].text, f"values {got!r} for {wanted!r}"))
            agreed.append(Statement(kind, ""))
    return Outcome(agreed, raised)


def is_jump(f: Any, x: np.ndarray, got: Any) -> bool:
    """Return whether NumPy's result changes by about the observed difference when the input changes within rounding."""
    rng = np.random.default_rng(0)
    value = f(x.copy())
    near = [f(x * (1 + 4e-16 * rng.integers(-2, 3, x.shape))) for _ in range(16)]
    return bool(10 * np.max(np.abs(near - value)) >= abs(float(got) - value))


def variables(text: str, x: np.ndarray) -> dict[str, Any]:
    """Return the variables at the end of a function in NumPy."""
    env: dict[str, Any] = {"np": np}
    exec(re.sub(r"return .*\Z", "return locals()", text), env)
    return env["f"](x.copy())


def has_number_written(text: str, x: np.ndarray) -> bool:
    """Return whether a program makes a 0-d array and writes to it (docs/guide/numpy_code.md)."""
    arrays = any(type(v) is np.ndarray and not v.ndim for v in variables(text, x).values())
    return (
        arrays
        and re.search(r"\] .?= | [-+*/%@]{1,2}= |out=|np\.(copyto|put|add\.at)|\.(fill|sort)\(", text) is not None
    )


def spread_is_zero(text: str, x: np.ndarray) -> bool:
    """Return whether a statement takes the standard deviation of equal numbers: NumPy's result is 0 or rounding."""
    values = variables(text, x)
    names = re.findall(r"(v\d+) = .*\bstd\(", text)
    return any(np.any(np.abs(values[name]) < 1e-12) for name in names if name in values)


# ---- shrinking


class Without(ast.NodeTransformer):
    """Removes the n-th part of a statement: a statement, or a term of a sum."""

    def __init__(self, n: int):
        self.n = n

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.stmt | ast.BinOp):
            self.n -= 1
            if self.n == -1:
                return (
                    self.visit(node.right if isinstance(node.left, ast.Constant) else node.left)
                    if isinstance(node, ast.BinOp)
                    else None
                )
            if isinstance(node, ast.BinOp):
                self.n -= 1
                if self.n == -1:
                    return self.visit(node.right)
        node = super().generic_visit(node)
        if getattr(node, "body", True) == []:
            return None
        return node


def shrunk(
    program: list[Statement], judge: Callable[[list[Statement]], Outcome], failure: Failure
) -> tuple[list[Statement], Failure]:
    """Remove statements from the end that are not needed for the failure."""

    def fails(tried: list[Statement]) -> Failure | None:
        try:
            with within(10):
                found = judge(tried).failure
        except (Exception, TooLong):
            return None
        return found if found and found.signature.split("|")[0] == failure.signature.split("|")[0] else None

    changed = True
    while changed:
        changed = False
        if program[-1].text.startswith("def f(x)"):  # for a function of an array: other names may refer to x
            for name in sorted(set(re.findall(r"\bv\d+\b", program[-1].text))):
                text = re.sub(rf"\b{name}\b(?! =)", "x", program[-1].text)
                if text != program[-1].text and (found := fails([*program[:-1], Statement("numpy", text)])):
                    program, failure, changed = [*program[:-1], Statement("numpy", text)], found, True
        for k in reversed(range(len(program))):
            tried = program[:k] + program[k + 1 :]
            if found := fails(tried):
                program, failure, changed = tried, found, True
                continue
            n = 1
            while n < sum(
                isinstance(node, ast.stmt) + 2 * isinstance(node, ast.BinOp)
                for node in ast.walk(ast.parse(program[k].text))
            ):
                try:
                    text = ast.unparse(Without(n).visit(ast.parse(program[k].text)))
                except Exception:
                    text = ""
                tried = [*program[:k], Statement(program[k].kind, text), *program[k + 1 :]]
                if text and (found := fails(tried)):
                    program, failure, changed = tried, found, True
                else:
                    n += 1
    return program, failure


def quiet() -> None:
    warnings.simplefilter("ignore")
