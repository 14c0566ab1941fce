"""Generate the reference from signatures, docstrings and the table: ``pages()`` returns {file name: Markdown}."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import chainrule
from chainrule._src import table
from chainrule._src.rules.primitive import TABLE, Primitive

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from tools.homes import home_of

#: Pages of top-level names: title, and the modules that define the names.
TOP = {
    "array": ("Array", ["api.array"]),
    "creation": ("Tensor creation", ["ops.creation", "arrays.size", "tape.tensor"]),
    "elementwise": ("Elementwise", ["ops.elementwise", "ops.floats"]),
    "reductions": (
        "Reductions, order, statistics",
        ["ops.reductions", "ops.ordering", "ops.statistics", "ops.searching"],
    ),
    "shapes": ("Shapes, joining, splitting", ["ops.shaping", "ops.joining", "ops.splitting", "ops.matrices"]),
    "indexing": ("Indexing", ["ops.gathering", "ops.scattering"]),
    "products": ("Products, differences, integrals", ["ops.products", "ops.einsum", "ops.calculus"]),
    "views": ("Strides, complex pairs, copies", ["ops.memory"]),
}
#: Pages of modules: title, and the modules.
MODULES = {
    "autograd": ("autograd", ["autograd"]),
    "func": ("func", ["func"]),
    "explain": ("explain", ["explaining"]),
    "jacobians": ("jacobian, hessian", ["jacobians"]),
    "scipy": ("scipy", ["scipy"]),
    "sparse": ("sparse", ["sparse"]),
    "scipy-sparse-linalg": ("scipy.sparse.linalg", ["scipy.sparse.linalg"]),
    "scipy-interpolate": ("scipy.interpolate", ["scipy.interpolate"]),
    "scipy-linalg": ("scipy.linalg", ["scipy.linalg"]),
    "scipy-optimize": ("scipy.optimize, scipy.integrate", ["scipy.optimize", "scipy.integrate"]),
    "scipy-signal": ("scipy.signal, scipy.ndimage", ["scipy.signal", "scipy.ndimage"]),
    "compile": ("compile", ["_src.compiling", "_src.compiling.control_flow"]),
    "autograd-functional": ("autograd.functional", ["autograd.functional"]),
    "autograd-forward_ad": ("autograd.forward_ad", ["autograd.forward_ad"]),
    "autograd-graph": ("autograd.graph", ["autograd.graph"]),
    "implicit": ("implicit", ["implicit"]),
    "primitive": ("primitive", ["primitive"]),
    "nn": ("nn", ["nn"]),
    "nn-functional": ("nn.functional", ["nn.functional"]),
    "nn-init": ("nn.init, nn.utils", ["nn.init", "nn.utils"]),
    "optim": ("optim", ["optim", "optim.lr_scheduler"]),
    "linalg": ("linalg", ["linalg"]),
    "fft": ("fft", ["fft"]),
    "special": ("special", ["special"]),
    "signal": ("signal.windows", ["signal.windows"]),
    "stats": ("stats", ["stats"]),
    "distributions": ("distributions", ["distributions"]),
    "masked": ("masked", ["masked"]),
    "random": ("random", ["random"]),
    "testing": ("testing", ["testing"]),
    "checkpoint": ("utils.checkpoint", ["utils.checkpoint"]),
    "tree": ("tree", ["tree"]),
}
#: The first entries of a page, in the order of use; the other entries follow alphabetically.
FIRST = {
    "autograd": "backward grad Function no_grad enable_grad set_grad_enabled inference_mode detect_anomaly gradcheck",
    "func": "grad value_and_grad vmap jacrev jacfwd hessian hvp vjp jvp linearize linear_transpose",
    "compile": "compile Compiled scan fori_loop while_loop",
    "explain": "explain Explanation Contributions Contribution Step Arrow Graph Value JacobianExplanation",
    "jacobians": "jacobian hessian prepare_jacobian prepare_hessian jacobian_plan Jacobian JacobianOperator PreparedJacobian Plan",
    "scipy": "minimize least_squares root solve_ivp solve_bvp",
    "autograd-functional": "jacobian hessian hvp vhp vjp jvp",
    "autograd-forward_ad": "dual_level make_dual unpack_dual",
    "autograd-graph": "saved_tensors_hooks save_on_cpu save_to_disk register_multi_grad_hook Node GradientEdge",
    "implicit": "root fixed_point minimum least_squares linear_solve custom_root custom_fixed_point",
    "primitive": "elementwise linear contraction opaque discrete leading_axes unsupported",
    "creation": "tensor from_numpy as_tensor zeros ones full empty arange linspace eye zeros_like ones_like full_like",
    "elementwise": "add sub mul div pow neg abs sqrt exp log sin cos tanh sigmoid relu where maximum minimum clamp",
    "reductions": "sum mean std var max min amax amin argmax argmin prod cumsum sort argsort topk median quantile softmax",
    "shapes": "reshape transpose permute squeeze unsqueeze flatten cat stack split chunk broadcast_to flip roll tile diag",
    "indexing": "gather take take_along_dim scatter scatter_add index_add index_copy masked_fill masked_select",
    "products": "matmul mm mv dot outer bmm einsum tensordot inner kron trace cross gradient trapezoid",
    "views": "as_strided view_as_complex view_as_real",
    "more": "no_grad enable_grad set_grad_enabled inference_mode save load set_default_dtype set_printoptions",
    "nn": "Module Parameter Sequential ModuleList ModuleDict Linear",
    "optim": "SGD Adam AdamW LBFGS Optimizer",
    "nn-functional": "linear relu gelu softmax log_softmax cross_entropy mse_loss conv1d conv2d max_pool2d avg_pool2d layer_norm "
    "batch_norm dropout embedding scaled_dot_product_attention",
    "linalg": "norm inv solve det slogdet eigh eigvalsh eig svd qr cholesky lstsq pinv matrix_rank",
    "fft": "fft ifft rfft irfft fft2 ifft2 fftn ifftn fftfreq rfftfreq fftshift ifftshift",
    "random": "manual_seed rand randn randint randperm normal bernoulli multinomial Generator",
    "testing": "gradcheck gradgradcheck rulecheck assert_close",
    "checkpoint": "checkpoint checkpoint_sequential",
    "tree": "tree_map tree_flatten tree_unflatten tree_leaves",
    "tensor": "requires_grad requires_grad_ backward grad grad_fn detach is_leaf retain_grad register_hook why graph",
    "tensor-data": "shape dtype item numpy tolist to size dim",
    "tensor-inplace": "copy_ fill_ zero_ normal_ uniform_",
}
#: Common terms for an entry, added to its heading so that the search finds it.
CALLED = {
    "func.grad": "gradient of a function",
    "func.value_and_grad": "value and gradient, for scipy.optimize",
    "func.vmap": "vectorize, batch, per-sample gradients",
    "func.jacrev": "Jacobian by reverse mode",
    "func.jacfwd": "Jacobian by forward mode",
    "func.hessian": "Hessian, second derivatives",
    "func.hvp": "Hessian-vector product",
    "func.vjp": "vector-Jacobian product, pullback",
    "func.jvp": "Jacobian-vector product, pushforward, directional derivative",
    "func.linearize": "tangent map",
    "func.linear_transpose": "adjoint of a linear function",
    "jacobians.jacobian": "sparse and structured Jacobians",
    "jacobians.hessian": "sparse Hessians, second derivatives",
    "jacobians.prepare_jacobian": "sparsity pattern, many evaluations",
    "jacobians.prepare_hessian": "Hessian of a Lagrangian, constrained optimization",
    "jacobians.jacobian_plan": "strategy, cost",
    "scipy.least_squares": "fitting, residuals",
    "scipy.minimize": "optimization, constrained optimization, Ipopt",
    "scipy.root": "nonlinear equations",
    "scipy.solve_ivp": "differential equations",
    "scipy.solve_bvp": "boundary values",
    "compile": "jit, fast repeated calls, plans",
    "scan": "loops, recurrences, lax.scan",
    "autograd.backward": "reverse mode, backpropagation",
    "autograd.grad": "gradients returned",
    "autograd.Function": "custom gradient",
    "autograd.detect_anomaly": "find NaN and infinity",
    "autograd.gradcheck": "compare with finite differences",
    "autograd.no_grad": "disable recording",
    "autograd.functional.jacobian": "Jacobian",
    "autograd.functional.hessian": "Hessian, second derivatives",
    "autograd.functional.hvp": "Hessian-vector product",
    "autograd.functional.vhp": "vector-Hessian product",
    "autograd.functional.vjp": "vector-Jacobian product",
    "autograd.functional.jvp": "Jacobian-vector product, directional derivative",
    "autograd.forward_ad.make_dual": "dual numbers, tangents",
    "autograd.graph.saved_tensors_hooks": "pack and unpack saved values",
    "autograd.graph.save_on_cpu": "offload saved values",
    "utils.checkpoint.checkpoint": "rematerialization, gradient checkpointing",
    "testing.gradcheck": "compare with finite differences",
    "testing.rulecheck": "check the rules of a primitive",
    "primitive.elementwise": "custom derivative, ufunc",
    "primitive.opaque": "custom VJP and JVP",
    "tree.tree_map": "pytrees, nested containers",
    "explaining.explain": "show every step of a backward pass",
    "Tensor.detach": "stop gradient",
    "Tensor.why": "why is grad None",
    "Tensor.retain_grad": "gradient of an intermediate value",
    "Tensor.register_hook": "observe or change a gradient",
    "Tensor.requires_grad_": "request gradients of a leaf",
    "linalg.norm": "vector and matrix norms",
    "linalg.lstsq": "least squares",
    "linalg.eigh": "eigenvalues of symmetric matrices",
    "linalg.svd": "singular values",
    "nn.functional.cross_entropy": "negative log-likelihood of classes",
}
#: Public names that a package provides through ``__getattr__`` or does not list.
MORE = {
    "explaining": [
        "Arrow", "Contribution", "Contributions", "Explanation", "Graph", "JacobianExplanation", "Step", "Value", "explain",
    ],
    "jacobians": [
        "Jacobian", "JacobianOperator", "Plan", "PreparedJacobian", "hessian", "jacobian", "jacobian_plan", "prepare_hessian",
        "prepare_jacobian",
    ],
    "autograd": ["Function", "detect_anomaly", "gradcheck", "gradgradcheck", "set_detect_anomaly"],
    "random": [
        "Generator", "bernoulli", "binomial", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial",
        "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
        "set_rng_state",
    ],
}  # fmt: skip
SECTION = re.compile(r"^(Args|Returns|Raises|Example|Attributes|Yields):$")


#: The sections of the reference's index.
PARTS = {
    "Differentiate": [
        "autograd",
        "func",
        "autograd-functional",
        "autograd-forward_ad",
        "autograd-graph",
        "checkpoint",
        "jacobians",
    ],
    "Compile": ["compile"],
    "Solve": ["scipy", "implicit", "scipy-optimize", "sparse", "scipy-sparse-linalg"],
    "Explain and check": ["explain", "testing"],
    "Tensors": ["tensor", "tensor-data", "tensor-methods", "tensor-inplace", "array", "creation", "random"],
    "Operations": ["elementwise", "reductions", "shapes", "indexing", "products", "views"],
    "Mathematics": [
        "linalg",
        "fft",
        "special",
        "stats",
        "distributions",
        "signal",
        "masked",
        "scipy-linalg",
        "scipy-interpolate",
        "scipy-signal",
    ],
    "Networks": ["nn", "nn-functional", "nn-init", "optim"],
    "Everything else": ["primitive", "tree", "more", "rules"],
}


def pages() -> dict[str, str]:
    """Return all pages of the reference, with its index."""
    entries = _entries()
    LINKS.clear()
    for page, (_, _, found) in entries.items():
        for prefix, name, _ in found:
            LINKS.setdefault(f"{prefix}.{name}", f"{page}.md#{name}")
    made = {page: _page(page, title, about(), found) for page, (title, about, found) in entries.items()}
    made["rules"] = _rules_page()
    titles = {name: text.split("\n", 1)[0].removeprefix("# ") for name, text in made.items()}
    parts = [
        "# Reference",
        "Generated from the docstrings, whose examples are tested. Names and arguments are PyTorch's.",
    ]
    for part, names in PARTS.items():
        parts.append(f"## {part}")
        for name in names:
            found = [
                _link(f"{prefix}.{each}", each)
                for prefix, each, _ in _in_order(name, entries.get(name, ("", "", []))[2])
            ]
            some = ", ".join(found[:9]) + (", …" if len(found) > 9 else "")
            parts.append(f"- [{titles[name]}]({name}.md)" + (f": {some}" if some else ""))
    return {"index": "\n\n".join(parts) + "\n", **{name: made[name] for names in PARTS.values() for name in names}}


def _is_function(thing: Any) -> bool:
    """Return whether the object is a function, or an Operation, whose fast path is in C."""
    return inspect.isfunction(inspect.unwrap(thing) if type(thing).__name__ == "Operation" else thing)


#: The links to entries, from ``chainrule.func.grad`` to ``func.md#grad``. Filled by `pages`.
LINKS: dict[str, str] = {}
Entry = tuple[str, str, Any]  # prefix, name, object


def changelog() -> str:
    """Return CHANGELOG.md with its links adapted to the site."""
    return (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")


def _entries() -> dict[str, tuple[str, Callable[[], str], list[Entry]]]:
    """Map each page to its title, a function that returns its introduction, and its entries."""
    made: dict[str, tuple[str, Callable[[], str], list[Entry]]] = {}
    for page, (title, modules) in TOP.items():
        names = [name for name in chainrule.__all__ if _home(chainrule, name) in modules and name != "Tensor"]
        made[page] = title, str, [("chainrule", name, getattr(chainrule, name)) for name in names]
    made["more"] = "Modes, files, printing", _types, _rest()
    for page, (title, modules) in MODULES.items():
        found = _entries_of_modules(modules)
        there = {name for _, name, _ in found}
        more = [name for name in chainrule.__all__ if _page_of(name) == page and name not in there]
        found += [("chainrule", name, getattr(chainrule, name)) for name in more if callable(getattr(chainrule, name))]
        made[page] = title, lambda modules=modules: _about(modules), found
    return made | _tensor_pages()


# -- pages -------------------------------------------------------------------------------------------------------------


#: Modules whose names are partly top-level names, too; both are described on one page.
SHARED = {"autograd": "autograd", "func": "func", "linalg": "linalg", "ops.linalg.decompositions": "linalg", "ops.linalg.factors": "linalg",
          "special": "special", "signal": "signal", "nn": "nn-functional", "explaining": "explain", "compiling": "compile",
          "jacobians": "jacobians", "ops.random": "random", "transforms": "func", "transforms.anomaly_mode": "autograd"}  # fmt: skip


def _page_of(name: str) -> str | None:
    """Return the page of the module that defines a top-level name."""
    home = _home(chainrule, name) or ""
    return SHARED.get(home) or SHARED.get(home.split(".")[0])


def _rest() -> list[Entry]:
    """Return the top-level names that no other page describes."""
    elsewhere = {module for _, modules in TOP.values() for module in modules} | {"tape.tensor"}
    homes = {name: _home(chainrule, name) for name in chainrule.__all__ if not _page_of(name)}
    rest = {name: getattr(chainrule, name) for name, home in homes.items() if home and home not in elsewhere}
    return [("chainrule", name, thing) for name, thing in rest.items() if callable(thing)]


def _types() -> str:
    public = {name: getattr(chainrule, name) for name in chainrule.__all__}
    types = ", ".join(f"`{name}`" for name, thing in public.items() if isinstance(thing, chainrule.dtype))
    others = [name for name, thing in public.items() if not callable(thing) and not inspect.ismodule(thing)]
    constants = ", ".join(f"`{name}`" for name in others if not isinstance(public[name], chainrule.dtype))
    lines = ["Top-level names other than operations.", f"Element types: {types}.", f"Constants: {constants}.",
             "Top-level names described with their modules:"]  # fmt: skip
    for page in dict.fromkeys(SHARED.values()):
        names = ", ".join(_link(f"chainrule.{name}", name) for name in public if _page_of(name) == page)
        lines.append(f"- [{page}]({page}.md): {names}")
    return "\n\n".join(lines)


def _about(modules: list[str]) -> str:
    return "\n\n".join(
        _markdown(inspect.getdoc(importlib.import_module(f"chainrule.{name}")) or "") for name in modules
    )


def _entries_of_modules(modules: list[str]) -> list[Entry]:
    found = []
    for name in modules:
        module = importlib.import_module(f"chainrule.{name}")
        names = {*getattr(module, "__all__", []), *MORE.get(name, [])}
        prefix = "chainrule" if name.startswith("_src.") else f"chainrule.{name}"
        found += [(prefix, each, getattr(module, each)) for each in names]
    return [entry for entry in found if callable(entry[2])]


#: The tensor's methods and attributes for autograd; the others are about its data or equivalent to functions.
TENSOR_AUTOGRAD = (
    "requires_grad requires_grad_ backward grad grad_fn detach detach_ is_leaf retain_grad retains_grad register_hook "
    "register_post_accumulate_grad_hook why graph data is_inference output_nr"
)


def _tensor_pages() -> dict[str, tuple[str, Callable[[], str], list[Entry]]]:
    cls = chainrule.Tensor
    own: dict[str, list[Entry]] = {"tensor": [], "tensor-data": [], "tensor-inplace": []}
    twins, plain, also = [], [], []
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_"):
            continue
        top, doc = getattr(chainrule, name, None), inspect.getdoc(member)
        if name in TENSOR_AUTOGRAD.split():
            own["tensor"].append(("Tensor", name, member))
        elif name.endswith("_") and re.fullmatch(r"In-place form of \S+", doc or ""):
            plain.append(name)
        elif name.endswith("_"):
            own["tensor-inplace"].append(("Tensor", name, member))
        elif callable(top) and inspect.getdoc(getattr(cls, name)) == inspect.getdoc(top):
            twins.append(name)
        elif not doc:
            also.append(name)
        else:
            own["tensor-data"].append(("Tensor", name, member))

    def about() -> str:
        return (
            f"{_markdown(inspect.getdoc(cls) or '')}\n\nThis page describes the autograd methods and attributes. See also "
            "[data](tensor-data.md) (type, shape, memory, copies), [functions as methods](tensor-methods.md) and "
            "[in-place methods](tensor-inplace.md)."
        )

    def methods() -> str:
        rows = ["These methods call the function of the same name with the tensor as its first argument.", ""]
        pages: dict[str, list[str]] = {}
        for name in sorted(twins):
            target = _target(name) or "more.md"
            pages.setdefault(target.split(".md")[0], []).append(_link(f"chainrule.{name}", name))
        for page in [page for names in PARTS.values() for page in names if page in pages]:
            title = {**TOP, **MODULES, "more": ("Others", [])}[page][0]
            rows += [f"## {title}", "", ", ".join(pages[page]) + ".", ""]
        return "\n".join(rows)

    def inplace() -> str:
        pairs = ", ".join(
            f"[`{name}`]({_target(name[:-1])})" if _target(name[:-1]) else f"`{name}`" for name in sorted(plain)
        )
        return (
            "Methods whose names end in `_` write their result into the tensor and are recorded. "
            f"In-place versions of functions: {pairs}."
        )

    def data() -> str:
        return f"Also, as in PyTorch: {', '.join(f'`{name}`' for name in sorted(also))}."

    return {
        "tensor": ("Tensor", about, own["tensor"]),
        "tensor-data": ("Tensor: data", data, own["tensor-data"]),
        "tensor-methods": ("Tensor: functions as methods", methods, []),
        "tensor-inplace": ("Tensor: in-place methods", inplace, own["tensor-inplace"]),
    }


def _in_order(page: str, entries: Iterable[Entry]) -> list[Entry]:
    first = {name: number for number, name in enumerate(FIRST.get(page, "").split())}
    return sorted(entries, key=lambda entry: (first.get(entry[1], len(first)), entry[1].lower(), entry[1]))


def _rules_page() -> str:
    """Return the page of the table of differentiation rules."""
    parts = [
        "# The table of rules",
        "All primitives with their kinds, and for each operand the formula that maps `g`, the gradient of L with "
        "respect to the result `out`, to the gradient of L with respect to the operand. A test compares each formula "
        "with the rule. A node saves the values that occur in its formulas.",
    ]
    for group, rows in _groups().items():
        parts.append(f"## {group}\n\n| primitive | kind | operand | gradient |\n|---|---|---|---|")
        for row in sorted(rows, key=lambda row: row.name):
            for i, (operand, text) in enumerate(row.formula.items() or [("", "")]):
                first = f"{_link(f'chainrule.{row.name}', row.name)} | {row.kind}" if i == 0 else " | "
                cells = f"`{operand}` | {_code(text)}" if operand else "– | –"
                parts[-1] += f"\n| {first} | {cells} |"
    return "\n\n".join(parts) + "\n"


#: The titles of the table's modules, in the order of the page.
SUBJECTS = {
    "arithmetic": "Arithmetic and complex numbers",
    "exponential": "Exponentials and logarithms",
    "trigonometric": "Trigonometric and hyperbolic functions",
    "comparison": "Comparison and selection",
    "contraction": "Products of vectors and matrices",
    "reduction": "Sums, products and cumulative reductions",
    "statistics": "Variance, median, and selection by index",
    "shape": "Reshaping, transposing, joining",
    "indexing": "Indexing and indexed assignment",
    "any_index": "Batched indices",
    "scattering": "Scattering",
    "memory": "Strides, and complex numbers as pairs",
    "windows": "Sliding windows",
    "linalg": "Inverses, linear systems, determinants, Cholesky factors",
    "decompositions": "Eigenvalues of symmetric matrices, singular values, QR",
    "eigen": "Eigenvalues of general matrices",
    "lu": "LU factors",
    "fft": "Fourier transforms",
    "special": "Error functions, products with a logarithm, Bessel functions",
    "nn": "Activations, losses, normalization",
    "convolution": "Convolutions",
    "pooling": "Pooling",
}


def _groups() -> dict[str, list[Any]]:
    """Return the primitives by title."""
    home = {}
    for found in pkgutil.iter_modules(table.__path__):
        module = importlib.import_module(f"chainrule._src.table.{found.name}")
        for row in vars(module).values():
            if isinstance(row, Primitive):
                home.setdefault(row.name, found.name)
    groups: dict[str, list[Any]] = {title: [] for title in SUBJECTS.values()}
    for row in TABLE.values():
        module = home.get(row.name, "other")
        groups.setdefault(SUBJECTS.get(module, module.replace("_", " ").capitalize()), []).append(row)
    return {title: rows for title, rows in groups.items() if rows}


def _page(page: str, title: str, about: str, entries: Iterable[Entry]) -> str:
    """Return a page with its introduction, a table of contents, and the entries."""
    found = _in_order(page, entries)
    parts = [f"# {title}"] + ([about] if about else [])
    if len(found) > 6:
        lines = [f"| {_link(f'{prefix}.{name}', name)} | {_sentence(thing)} |" for prefix, name, thing in found]
        parts.append("| name | summary |\n|---|---|\n" + "\n".join(lines))
    parts += [_entry(*entry) for entry in found]
    return "\n\n".join(parts) + "\n"


def _sentence(thing: Any) -> str:
    """Return the first sentence of an object's docstring."""
    first = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    first = re.split(r"(?<=[.?!]) (?=[A-Z])", first)[0]
    return _words(first).replace("|", "\\|")


def _target(name: str) -> str | None:
    """Return the link to the function of this name, at top level or in one of the main modules."""
    for prefix in ("chainrule", "chainrule.func", "chainrule.linalg", "chainrule.special", "chainrule.nn.functional"):
        if found := LINKS.get(f"{prefix}.{name}"):
            return found
    return None


def _link(full: str, shown: str) -> str:
    """Return a name as code, linked to its entry if there is one."""
    target = LINKS.get(full) or (_target(shown) if full == f"chainrule.{shown}" else None)
    return f"[`{shown}`]({target})" if target else f"`{shown}`"


# -- one name ----------------------------------------------------------------------------------------------------------


def _home(module: Any, name: str) -> str | None:
    """Return the module of chainrule that defines a public name."""
    thing = getattr(module, name)
    found = (
        home_of(thing) if _is_function(thing) or isinstance(thing, type) else getattr(thing, "__module__", None) or ""
    )
    if found == "chainrule._src.api.functions":
        return "ops.elementwise"  # public functions of elementwise primitives have no module of their own
    return found.removeprefix("chainrule.").removeprefix("_src.") if found.startswith("chainrule.") else None


def _entry(prefix: str, name: str, thing: Any) -> str:
    doc = _markdown(inspect.getdoc(thing) or "")
    called = CALLED.get(f"{prefix}.{name}".removeprefix("chainrule."))
    heading = f"## `{name}`" + (f" <small>{called}</small>" if called else "") + f" {{ #{name} }}"
    parts = [heading, f"```text\n{_signature(prefix, name, thing)}\n```", doc]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        parts += [_member(thing, each) for each in _members(thing)]
    return "\n\n".join(part for part in parts if part)


def _members(cls: type) -> list[str]:
    """Return the public names that a class defines, after those that it inherits from classes that are not public."""
    private = [base for base in reversed(cls.__mro__[1:]) if base.__module__.startswith("chainrule._src.")]
    names = dict.fromkeys(name for each in (*private, cls) for name in vars(each))
    return [name for name in names if not name.startswith("_")]


def _member(cls: type, name: str) -> str:
    """Return the section for a public method of a class."""
    member = inspect.getattr_static(cls, name)
    doc = inspect.getdoc(member)
    if not doc or isinstance(member, (str, int, tuple, dict)):
        return ""
    signature = _signature("Tensor", name, member).removeprefix("Tensor.")
    return f"### `{cls.__name__}.{signature}`\n\n{_markdown(doc)}" if "\n" not in signature else ""


def _signature(prefix: str, name: str, thing: Any) -> str:
    if isinstance(thing, property):
        return f"{prefix}.{name}"
    if isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{prefix}.{name}"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    if prefix == "Tensor" and bare and bare[0].name in ("self", "input"):
        bare = bare[1:]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<[^<>]*?([\w.]+)(?: at 0x[0-9a-f]+)?>", r"\1", text)
    line = f"{prefix}.{name}{text}"
    if len(line) <= 88:
        return line
    return f"{prefix}.{name}(\n" + "".join(f"    {each},\n" for each in _parameters(bare)) + ")"


def _parameters(parameters: list[inspect.Parameter]) -> list[str]:
    text = str(inspect.Signature(parameters))[1:-1]
    text = re.sub(r"<[^<>]*?([\w.]+)(?: at 0x[0-9a-f]+)?>", r"\1", text)
    return [line.rstrip(",") for line in textwrap.wrap(text, 84, break_long_words=False)]


# -- docstrings --------------------------------------------------------------------------------------------------------


def _markdown(doc: str) -> str:
    """Convert a docstring to Markdown: sections to lists, examples to code blocks, roles to code."""
    parts: list[str] = []
    for paragraph in _paragraphs(doc):
        section = SECTION.match(paragraph[0])
        if section:
            parts.append(f"**{section[1]}**")
            body = textwrap.dedent("\n".join(paragraph[1:]))
            parts.append(_markdown(body) if section[1] == "Example" else _items(body))
        elif paragraph[0].startswith(">>>"):
            parts.append("```pycon\n" + "\n".join(paragraph) + "\n```")
        elif paragraph[0].startswith("    "):
            parts.append("```text\n" + textwrap.dedent("\n".join(paragraph)) + "\n```")
        else:
            parts.append(_words("\n".join(paragraph)))
    return "\n\n".join(part for part in parts if part)


def _paragraphs(doc: str) -> list[list[str]]:
    """Split a docstring into paragraphs; indented sections and consecutive examples are kept together."""
    found: list[list[str]] = []
    for line in doc.splitlines():
        if SECTION.match(line) or not found:
            found.append([line])
        elif found[-1] and SECTION.match(found[-1][0]) and (line.startswith("    ") or not line.strip()):
            found[-1].append(line)
        elif found[-1] and SECTION.match(found[-1][0]):
            found.append([line])
        elif not line.strip():
            found.append([])
        elif line.startswith(">>>") and found[-1] and not found[-1][0].startswith(">>>"):
            found.append([line])
        else:
            found[-1].append(line)
    joined: list[list[str]] = []
    for paragraph in found:
        if not paragraph:
            continue
        if joined and joined[-1][0].startswith(">>>") and paragraph[0].startswith(">>>"):
            joined[-1] += ["", *paragraph]
        else:
            joined.append(paragraph)
    return joined


def _items(body: str) -> str:
    """Convert ``name: text`` entries to a list; other text is unchanged."""
    items: list[str] = []
    for line in body.strip().splitlines():
        named = re.match(r"^([\w.*, ()]+): (.*)$", line)
        if named:
            names = ", ".join(f"`{name.strip()}`" for name in named[1].split(","))
            items.append(f"- {names}: {_words(named[2])}")
        elif items and line.startswith(" "):
            items[-1] += f"\n    {_words(line.strip())}"
        else:
            items.append(_words(line))
    return "\n".join(items)


def _words(text: str) -> str:
    text = re.sub(r":\w+:`~?\.?([^`]*)`", lambda role: f"`{role[1].removeprefix('chainrule.')}`", text)
    text = _outside_code(re.sub(r"``([^`]+)``", r"`\1`", text), _escaped)
    return re.sub(r"`([A-Za-z_.]+)(\(\))?`", _linked, text)


def _linked(code: re.Match[str]) -> str:
    """Link a dotted name such as `func.grad` in a text; a name without a dot is often an argument."""
    target = LINKS.get(code[1]) or LINKS.get(f"chainrule.{code[1]}") if "." in code[1] else None
    return f"[{code[0]}]({target})" if target else code[0]


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([*_<\[])", r"\\\1", text)


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
