"""Containers of modules (``Sequential``, ``ModuleList``, ``ModuleDict``) and of parameters.

``chainrule.nn`` exports these classes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import TensorLike
from chainrule._src.tape.tensor import Tensor
from chainrule.nn.module import Module
from chainrule.nn.parameter import Parameter


class DataParallel(Module):
    """A wrapper that calls the module unchanged on one device, as PyTorch does on the CPU.

    Args:
        module: the wrapped module.
        device_ids, output_device, dim: accepted and ignored.
    """

    def __init__(
        self, module: Module, device_ids: object = None, output_device: DeviceLike = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: object, **kwargs: object) -> Any:
        """Call the module."""
        return self.module(*args, **kwargs)


class ModuleDict(Module):
    """A dictionary of modules. The parent module registers them."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self.register_module(name, module)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Return pairs of name and module."""
        return self._modules.items()


class ModuleList(Module):
    """A list of modules. The parent module registers them."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Append a module."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Append several modules."""
        for module in modules:
            self.append(module)
        return self

    def __getitem__(self, index: int | slice) -> Any:
        found = [*self._modules.values()][index]
        return ModuleList(found) if isinstance(index, slice) else found

    def __setitem__(self, index: int, module: Module) -> None:
        self.register_module([*self._modules][index], module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())


class Sequential(ModuleList):
    """A chain of modules: each is called with the output of the previous one.

    Args:
        args: modules, or one dictionary of them by name.

    >>> import chainrule as cr
    >>> cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.ReLU())
    Sequential(
      (0): Linear(in_features=3, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        named = args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {}
        super().__init__(() if named else args)
        for name, module in named.items():
            self.register_module(name, module)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Sequential(dict([*self._modules.items()][index]))
        return super().__getitem__(index)

    def forward(self, input: Any) -> Any:
        """Call the modules in order; return the last output."""
        for module in self:
            input = module(input)
        return input


class _Parameters(Module):
    """The base of the parameter containers: ordered names with parameters or other objects."""

    def _keys(self) -> list[str]:
        raise NotImplementedError

    @staticmethod
    def _elements(value: Tensor) -> object:
        """Return the type of a parameter's elements, for ``repr``."""
        return value.dtype

    def _assign(self, name: str, value: Any) -> None:
        """Store a value as an attribute; convert tensors to parameters."""
        convert = isinstance(value, Tensor) and not isinstance(value, Parameter)
        setattr(self, name, Parameter(value) if convert else value)

    def __len__(self) -> int:
        return len(self._keys())

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__} should not be called.")

    def extra_repr(self) -> str:
        """Return one line for each element."""
        lines = []
        for name in self._keys():
            value = getattr(self, name)
            text = f"Object of type: {type(value).__name__}"
            if isinstance(value, Tensor):
                text = f"Parameter containing: [{self._elements(value)} of size {'x'.join(map(str, value.shape))}]"
            lines.append(f"  ({name}): {text}")
        return "\n".join(lines)


class ParameterList(_Parameters):
    """A list of parameters. The parent module registers them.

    Args:
        values: parameters, tensors (converted to parameters), or any objects.

    >>> import chainrule as cr
    >>> weights = cr.nn.ParameterList([cr.zeros(2, 3), cr.zeros(3)])
    >>> [(name, tuple(p.shape)) for name, p in weights.named_parameters()]
    [('0', (2, 3)), ('1', (3,))]
    """

    def __init__(self, values: Iterable[object] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(() if values is None else values)

    def _keys(self) -> list[str]:
        return [str(i) for i in range(self._size)]

    def append(self, value: object) -> ParameterList:
        """Append a value."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[object]) -> ParameterList:
        """Append several values."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            kind = type(values).__name__
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {kind}")
        for value in values:
            self.append(value)
        return self

    __iadd__ = extend

    def _name(self, index: int) -> str:
        i = operator.index(index)
        if not -self._size <= i < self._size:
            raise IndexError(f"index {i} is out of range")
        return str(i % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)([*self][index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: object) -> None:
        self._assign(self._name(index), value)

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._keys())


class ParameterDict(_Parameters):
    """A dictionary of parameters. The parent module registers them.

    Args:
        parameters: a dictionary, or pairs of name and value. Tensors are converted to parameters; other objects are kept.

    >>> import chainrule as cr
    >>> weights = cr.nn.ParameterDict({"slope": cr.ones(2)})
    >>> weights["offset"] = cr.zeros(1)
    >>> list(weights), [p.requires_grad for p in weights.parameters()]
    (['slope', 'offset'], [True, True])
    """

    def __init__(self, parameters: object = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        self.update({} if parameters is None else parameters)

    def _keys(self) -> list[str]:
        return [*self._names]

    @staticmethod
    def _elements(value: Tensor) -> str:
        return value.type()

    def _check_key(self, key: str) -> str:
        if key not in self._names:
            raise KeyError(key)
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._check_key(key))

    def __setitem__(self, key: str, value: TensorLike) -> None:
        if not isinstance(key, str):
            kind = type(key).__name__
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is {kind!r})"
            )
        if key not in self._names and hasattr(self, key):
            raise KeyError(f"ParameterDict has an attribute {key!r} of its own: use another name")
        self._assign(key, value)
        self._names[key] = None

    def __delitem__(self, key: str) -> None:
        delattr(self, self._check_key(key))
        del self._names[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys())

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._names.keys()

    def values(self) -> Iterable[Any]:
        """Return the parameters."""
        return [self[key] for key in self]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return pairs of name and parameter."""
        return [(key, self[key]) for key in self]

    def get(self, key: str, default: object = None) -> Any:
        """Return the parameter of a name, or the default."""
        return getattr(self, key) if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a name; store the default first if the name is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a name and return its parameter."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last name; return it with its parameter."""
        key = next(reversed(self), None)
        if key is None:
            raise KeyError("popitem(): the ParameterDict is empty")
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all parameters."""
        for key in self:
            del self[key]

    def update(self, parameters: object) -> None:
        """Add the items of another dictionary, or pairs of name and parameter."""
        if not isinstance(parameters, (Mapping, ParameterDict, Iterable)):
            kind = type(parameters).__name__
            raise TypeError(
                f"ParametersDict.update should be called with an iterable of key/value pairs, but got {kind}"
            )
        for key, value in dict(parameters).items():
            self[key] = value

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same parameters."""
        return type(self)(dict(self))

    def fromkeys(self, keys: Iterable[str], default: object = None) -> ParameterDict:
        """Return a dictionary with these names, all mapped to ``default``."""
        return type(self)(dict.fromkeys(keys, default))

    def __or__(self, other: Mapping[str, object]) -> ParameterDict:
        return type(self)({**self, **other})

    def __ror__(self, other: Mapping[str, object]) -> ParameterDict:
        return type(self)({**other, **self})

    def __ior__(self, other: Mapping[str, object]) -> ParameterDict:
        self.update(other)
        return self
