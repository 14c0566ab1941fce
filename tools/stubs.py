"""Write the stubs (``.pyi``) that tell editors and type checkers what the declarations put into the public namespaces.

``python tools/stubs.py`` writes them; with ``--check`` it only says which are out of date.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import keyword
import re
import sys
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools.homes import home_of  # noqa: E402

HEADER = '"""Made by tools/stubs.py from the declarations."""\n\n'
NAMESPACES = ("chainrule", "chainrule.linalg", "chainrule.fft", "chainrule.special", "chainrule.nn.functional")
CLASSES = (
    ("chainrule/_src/tape/methods.pyi", "chainrule._src.tape.tensor", "Methods"),
    ("chainrule/_src/api/array_methods.pyi", "chainrule._src.api.array", "ArrayMethods"),
)
_WORD = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?:\.\w+)*")
_EVERYWHERE = {"Any", "None", "True", "False"}
_ALIASES = {
    name: (module, getattr(importlib.import_module(module), name))
    for module in ("chainrule._src.arrays.types", "chainrule._src.arrays.device")
    for name in importlib.import_module(module).__annotations__
}


def _is_function(value: Any) -> bool:
    """Return a function; also an operation that C does in the ordinary case."""
    return inspect.isfunction(inspect.unwrap(value) if type(value).__name__ == "Operation" else value)


class Stub:
    """The text of one stub: its definitions, and the imports that their annotations need."""

    def __init__(self, own: set[str]) -> None:
        self.own = own  # names that the stub defines itself, which annotations must not mean
        self.imports: set[str] = set()
        self.lines: list[str] = []

    def function(self, name: str, function: Any, indent: str = "", method: bool = False) -> None:
        """``def name(...)``, with the first line of its documentation."""
        scope = getattr(inspect.unwrap(function), "__globals__", {})
        try:
            signature = inspect.signature(function)
        except ValueError:
            signature = inspect.Signature([inspect.Parameter(n, kind) for n, kind in _ANYTHING])
        parameters = []
        for position, parameter in enumerate(signature.parameters.values()):
            if method and not position:
                parameter = parameter.replace(name="self", kind=inspect.Parameter.POSITIONAL_ONLY)
                parameter = parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
            else:
                known = parameter.annotation is not inspect.Parameter.empty
                text = self.annotation(parameter.annotation, scope) if known else "Any"
                parameter = parameter.replace(annotation=_Text(text))
            if parameter.default is not inspect.Parameter.empty:
                parameter = parameter.replace(default=_Text("..."))
            parameters.append(parameter)
        returns = signature.return_annotation
        returns = "Any" if returns is inspect.Signature.empty else self.annotation(returns, scope)
        text = str(inspect.Signature(parameters)).replace("'", "")
        text = text.replace("(self, /)", "(self)").replace("(self, /, ", "(self, ")
        doc = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ").replace("\\", "\\\\")
        self.lines.append(f"{indent}def {name}{text} -> {returns}:")
        self.lines.append(f'{indent}    """{doc}"""' if doc else f"{indent}    ...")

    def annotation(self, annotation: Any, scope: dict[str, Any]) -> str:
        """Return an annotation as text in which every name is imported under its own name."""
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return _WORD.sub(lambda match: self._name(match.group(), scope), text)

    def _name(self, dotted: str, scope: dict[str, Any]) -> str:
        first = dotted.partition(".")[0]
        if first in _EVERYWHERE or keyword.iskeyword(first):
            return dotted
        value = scope.get(first, getattr(builtins, first, None))
        if isinstance(value, types.ModuleType):
            self.imports.add(f"import {value.__name__} as {first}" if value.__name__ != first else f"import {first}")
            return dotted
        if value is getattr(builtins, first, self) and first not in scope:
            if first not in self.own:
                return dotted
            self.imports.add("import builtins")
            return f"builtins.{dotted}"
        if first in _ALIASES and value is _ALIASES[first][1]:
            self.imports.add(f"from {_ALIASES[first][0]} import {first}")
            return dotted
        home, name = home_of(value), getattr(value, "__qualname__", None)
        if (
            name != first
            or home in ("", "types", "builtins")
            or (not isinstance(value, type) and home.startswith("typing"))
        ):
            return "Any"  # an alias, a type variable
        if first in self.own:
            return dotted
        self.imports.add(f"from {home} import {first}")
        return dotted

    def value(self, name: str, value: Any) -> None:
        """A constant, a class or a submodule."""
        if isinstance(value, types.ModuleType):
            parent, _, last = value.__name__.rpartition(".")
            line = f"import {last} as {name}" if not parent else f"from {parent} import {last} as {name}"
            self.imports.add(line)
        elif isinstance(value, type) and value.__name__ == name:
            self.imports.add(f"from {home_of(value)} import {name} as {name}")
        else:
            self.lines.append(f"{name}: {self._type_of(value)}")

    def _type_of(self, value: Any) -> str:
        kind = type(value)
        if kind.__module__ == "builtins":
            return "Any" if value is None else self._name(kind.__name__, {})
        self.imports.add(f"from {home_of(kind)} import {kind.__name__} as _{kind.__name__}")
        return f"_{kind.__name__}"

    def text(self) -> str:
        return HEADER + "\n".join(["from typing import Any", *sorted(self.imports), *self.lines]) + "\n"


class _Text(str):
    """Text that is its own repr, as signatures print annotations and defaults."""

    def __repr__(self) -> str:
        return str(self)


_ANYTHING = (("args", inspect.Parameter.VAR_POSITIONAL), ("kwargs", inspect.Parameter.VAR_KEYWORD))


def of_namespace(module: types.ModuleType) -> str:
    """Return the stub of a module whose public names come from declarations."""
    stub = Stub(set(module.__all__))
    for name in module.__all__:
        value = getattr(module, name)
        (stub.function if _is_function(value) else stub.value)(name, value)
    if module.__name__ == "chainrule":
        stub.lines.append("__version__: str")
    return stub.text()


def of_class(cls: type, name: str) -> str:
    """Return the stub of a base class with what modules above attach to a class."""
    stub = Stub({attribute for attribute in dir(cls) if not attribute.startswith("_")})
    stub.lines.append(f"\nclass {name}:")
    for attribute, value in sorted(vars(cls).items()):
        home = getattr(getattr(value, "fget", value), "__module__", "")
        special = attribute.startswith("__") and _is_function(value)
        if home == home_of(cls) or isinstance(value, types.MemberDescriptorType):
            continue
        users = not attribute.startswith("__dask_")  # and not Dask's
        if attribute.startswith("_") and not (special and users and cls.__name__ == "Array"):
            continue
        base = vars(cls).get(attribute[:-1]) if attribute.endswith("_") and not special else None
        if special and attribute not in ("__init__", "__getattr__"):
            others = (
                ""
                if attribute in _UNARY
                else "self, index: Any, value: Any"
                if attribute == "__setitem__"
                else "self, other: Any"
            )
            stub.lines.append(f"    def {attribute}({others or 'self'}, /) -> Any: ...")
        elif _is_function(value):
            stub.function(attribute, base if _is_function(base) else value, "    ", method=True)
        elif isinstance(value, property):
            stub.lines += ["    @property", f"    def {attribute}(self) -> Any: ..."]
        elif not attribute.startswith("_"):
            stub.lines.append(f"    {attribute}: {stub._type_of(value)}")
    return stub.text()


_UNARY = {"__neg__", "__pos__", "__abs__", "__invert__"}


def stubs() -> dict[Path, str]:
    """Every stub, by its path."""
    found = {}
    for name in (*NAMESPACES, "chainrule.signal.transforms"):  # some methods are attached when these load
        importlib.import_module(name)
    for path, module, name in CLASSES:
        home = importlib.import_module(module)
        found[ROOT / path] = of_class(getattr(home, name.removesuffix("Methods") or "Tensor"), name)
    for name in NAMESPACES:
        module = importlib.import_module(name)
        path = Path(str(module.__file__)).with_suffix(".pyi")
        found[path] = of_namespace(module)
    return found


def main() -> int:
    stale = {path: text for path, text in stubs().items() if not path.exists() or path.read_text() != text}
    check = "--check" in sys.argv
    for path, text in stale.items():
        if not check:
            path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {'out of date, run python tools/stubs.py' if check else 'written'}")
    return bool(stale) and check


if __name__ == "__main__":
    sys.exit(main())
