"""The reference, made from signatures, docstrings and the table: ``pages()`` gives {file name: Markdown}."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import chainrule
from chainrule import table
from chainrule.core.primitive import TABLE, Primitive

#: Pages of names of the package itself: title, then the modules that define them.
TOP = {
    "creation": ("Making tensors", ["ops.creation", "core.size", "core.tensor"]),
    "elementwise": ("Elementwise", ["ops.elementwise"]),
    "reductions": ("Reductions and order", ["ops.reductions", "ops.ordering"]),
    "shapes": ("Shapes and joining", ["ops.shaping", "ops.joining", "ops.matrices"]),
    "indexing": ("Indexing", ["ops.gathering"]),
    "products": ("Products", ["ops.products", "ops.einsum"]),
}
#: Pages of modules: title, then the modules themselves.
MODULES = {
    "autograd": ("autograd", ["autograd"]),
    "autograd-graph": ("autograd.graph", ["autograd.graph"]),
    "autograd-functional": ("autograd.functional", ["autograd.functional"]),
    "autograd-forward_ad": ("autograd.forward_ad", ["autograd.forward_ad"]),
    "explain": ("explain", ["explaining"]),
    "func": ("func", ["func"]),
    "primitive": ("primitive", ["primitive"]),
    "nn": ("nn, nn.functional", ["nn", "nn.functional"]),
    "linalg": ("linalg", ["linalg"]),
    "fft": ("fft", ["fft"]),
    "special": ("special", ["special"]),
    "signal": ("signal.windows", ["signal.windows"]),
    "masked": ("masked", ["masked"]),
    "random": ("random", ["random"]),
    "testing": ("testing", ["testing"]),
    "checkpoint": ("utils.checkpoint", ["utils.checkpoint"]),
    "tree": ("tree", ["tree"]),
}
#: Public names that a package gives through ``__getattr__`` or does not list.
MORE = {
    "explaining": ["Arrow", "Explanation", "Graph", "Step", "Value", "explain", "record_lines"],
    "autograd": ["Function", "detect_anomaly", "gradcheck", "gradgradcheck", "set_detect_anomaly"],
    "random": [
        "Generator", "bernoulli", "binomial", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial",
        "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
        "set_rng_state",
    ],
}  # fmt: skip
SECTION = re.compile(r"^(Args|Returns|Raises|Example|Attributes|Yields):$")


def pages() -> dict[str, str]:
    """Every page of the reference, with its index."""
    made = {"tensor": _tensor_page(), **{name: _top_page(*row) for name, row in TOP.items()}}
    made["more"] = _rest_page()
    made |= {name: _module_page(*row) for name, row in MODULES.items()}
    made["rules"] = _rules_page()
    titles = {name: text.split("\n", 1)[0].removeprefix("# ") for name, text in made.items()}
    lines = [f"- [{title}]({name}.md)" for name, title in titles.items()]
    index = "# Reference\n\nMade from the docstrings, whose examples are tests. Names and arguments are PyTorch's.\n\n"
    return {"index": index + "\n".join(lines) + "\n", **made}


# -- pages -------------------------------------------------------------------------------------------------------------


def _top_page(title: str, modules: list[str]) -> str:
    names = [name for name in chainrule.__all__ if _home(chainrule, name) in modules and name != "Tensor"]
    return _page(title, "", [("chainrule", name, getattr(chainrule, name)) for name in names])


def _rest_page() -> str:
    """What the package has and no other page shows."""
    elsewhere = {module for _, modules in TOP.values() for module in modules} | {"random", "linalg", "core.tensor"}
    homes = {name: _home(chainrule, name) for name in chainrule.__all__}
    public = {
        name: getattr(chainrule, name)
        for name, home in homes.items()
        if home not in elsewhere and not (home or "").startswith("explaining.")
    }
    entries = [
        ("chainrule", name, thing) for name, thing in public.items() if _home(chainrule, name) and callable(thing)
    ]
    types = ", ".join(f"`{name}`" for name, thing in public.items() if isinstance(thing, chainrule.dtype))
    values = ", ".join(
        f"`{name}`"
        for name, thing in public.items()
        if not callable(thing) and not isinstance(thing, (ModuleType, float, chainrule.dtype))
    )
    return _page("Modes, files, printing", f"The element types are NumPy's: {types}. Values: {values}.", entries)


def _module_page(title: str, modules: list[str]) -> str:
    entries = []
    about = []
    for name in modules:
        module = importlib.import_module(f"chainrule.{name}")
        about.append(_markdown(inspect.getdoc(module) or ""))
        names = [*getattr(module, "__all__", []), *MORE.get(name, [])]
        entries += [(f"chainrule.{name}", each, getattr(module, each)) for each in sorted(set(names), key=str.lower)]
    return _page(title, "\n\n".join(about), [entry for entry in entries if callable(entry[2])])


def _tensor_page() -> str:
    cls = chainrule.Tensor
    entries, same, also = [], [], []
    for name in sorted(vars(cls)):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_"):
            continue
        top = getattr(chainrule, name, None)
        if callable(top) and inspect.getdoc(getattr(cls, name)) == inspect.getdoc(top):
            same.append(f"`{name}`")
        elif inspect.getdoc(member):
            entries.append(("Tensor", name, member))
        else:
            also.append(f"`{name}`")
    about = f"{_markdown(inspect.getdoc(cls) or '')}\n\nMethods that do what the function of that name does: "
    about += f"{', '.join(same)}.\n\nAs in PyTorch: {', '.join(also)}."
    return _page("Tensor", about, entries)


def _rules_page() -> str:
    """The table: what is differentiated how."""
    parts = [
        "# The table of rules",
        "Every row of the table: its kind, and for each operand the formula that takes `g`, the gradient of L with "
        "respect to the result `out`, to the gradient of L with respect to the operand. A test evaluates each formula "
        "against the rule that runs. What a formula names is what the node saves.",
    ]
    for group, rows in _groups().items():
        parts.append(f"## {group}\n\n| row | kind | operand | gradient |\n|---|---|---|---|")
        for row in sorted(rows, key=lambda row: row.name):
            for i, (operand, text) in enumerate(row.formula.items() or [("", "")]):
                first = f"`{row.name}` | {row.kind}" if i == 0 else " | "
                cells = f"`{operand}` | {_code(text)}" if operand else "– | –"
                parts[-1] += f"\n| {first} | {cells} |"
    return "\n\n".join(parts) + "\n"


def _groups() -> dict[str, list[Any]]:
    """The rows, by the module of the table that they are written in."""
    home = {}
    for found in pkgutil.iter_modules(table.__path__):
        module = importlib.import_module(f"chainrule.table.{found.name}")
        for row in vars(module).values():
            if isinstance(row, Primitive):
                home.setdefault(row.name, found.name)
    groups: dict[str, list[Any]] = {}
    for row in TABLE.values():
        groups.setdefault(home.get(row.name, "other"), []).append(row)
    return dict(sorted(groups.items()))


def _page(title: str, about: str, entries: Iterable[tuple[str, str, Any]]) -> str:
    parts = [f"# {title}"] + ([about] if about else [])
    parts += [_entry(*entry) for entry in entries]
    return "\n\n".join(parts) + "\n"


# -- one name ----------------------------------------------------------------------------------------------------------


def _home(module: Any, name: str) -> str | None:
    """The module of chainrule that defines a public name."""
    found = getattr(getattr(module, name), "__module__", None) or ""
    if name in vars(module) and inspect.isfunction(getattr(module, name)) and found == "chainrule":
        return "ops.elementwise"  # what faces.py makes has no module of its own
    return found.removeprefix("chainrule.") if found.startswith("chainrule.") else None


def _entry(prefix: str, name: str, thing: Any) -> str:
    doc = _markdown(inspect.getdoc(thing) or "")
    parts = [f"## `{name}`", f"```text\n{_signature(prefix, name, thing)}\n```", doc]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        parts += [_member(thing, each) for each in vars(thing) if not each.startswith("_")]
    return "\n\n".join(part for part in parts if part)


def _member(cls: type, name: str) -> str:
    """A public method of a class."""
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
    """A docstring as Markdown: sections become lists, examples become blocks, roles become code."""
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
    """Paragraphs; a section goes on over blank lines as long as lines are indented, an example over its prompts."""
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
    """``name: text`` entries as a list; text without names as it is."""
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
    return _outside_code(re.sub(r"``([^`]+)``", r"`\1`", text), _escaped)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([*_<\[])", r"\\\1", text)


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
