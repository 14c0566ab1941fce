"""Modules that hold modules or parameters: one after the other, in a list, by name."""

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
    """A module as it is: with one device there is nothing to divide, as in PyTorch on the CPU.

    Args:
        module: what is called.
        device_ids, output_device, dim: accepted.
    """

    def __init__(
        self, module: Module, device_ids: object = None, output_device: DeviceLike = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: object, **kwargs: object) -> Any:
        """What the module gives."""
        return self.module(*args, **kwargs)


class ModuleDict(Module):
    """A dictionary of modules, which belong to the module that has it as an attribute."""

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
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names with the modules."""
        return self._modules.items()


class ModuleList(Module):
    """A list of modules, which belong to the module that has it as an attribute."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add several modules at the end."""
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
    """Modules one after the other: each is called with what the one before it gave.

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
        """What the last module gives."""
        for module in self:
            input = module(input)
        return input


class _Parameters(Module):
    """Parameters under names, in an order; other objects may be among them."""

    def _keys(self) -> list[str]:
        raise NotImplementedError

    @staticmethod
    def _elements(value: Tensor) -> object:
        """What the elements are called in print."""
        return value.dtype

    def _put(self, name: str, value: Any) -> None:
        """Own a value; a tensor that is no parameter becomes one."""
        made = isinstance(value, Tensor) and not isinstance(value, Parameter)
        setattr(self, name, Parameter(value) if made else value)

    def __len__(self) -> int:
        return len(self._keys())

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__} should not be called.")

    def extra_repr(self) -> str:
        """A line for each."""
        lines = []
        for name in self._keys():
            value = getattr(self, name)
            text = f"Object of type: {type(value).__name__}"
            if isinstance(value, Tensor):
                text = f"Parameter containing: [{self._elements(value)} of size {'x'.join(map(str, value.shape))}]"
            lines.append(f"  ({name}): {text}")
        return "\n".join(lines)


class ParameterList(_Parameters):
    """A list of parameters, which belong to the module that has it as an attribute.

    Args:
        values: parameters; tensors, which become parameters; or any objects.

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
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[object]) -> ParameterList:
        """Add several values at the end."""
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
        self._put(self._name(index), value)

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._keys())


class ParameterDict(_Parameters):
    """A dictionary of parameters, which belong to the module that has it as an attribute.

    Args:
        parameters: a dictionary, or pairs, of names and parameters; tensors become parameters, other objects stay.

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

    def _known(self, key: str) -> str:
        if key not in self._names:
            raise KeyError(key)
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._known(key))

    def __setitem__(self, key: str, value: TensorLike) -> None:
        if not isinstance(key, str):
            kind = type(key).__name__
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is {kind!r})"
            )
        if key not in self._names and hasattr(self, key):
            raise KeyError(f"ParameterDict has an attribute {key!r} of its own: take another name")
        self._put(key, value)
        self._names[key] = None

    def __delitem__(self, key: str) -> None:
        delattr(self, self._known(key))
        del self._names[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys())

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._names.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return [self[key] for key in self]

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with the parameters."""
        return [(key, self[key]) for key in self]

    def get(self, key: str, default: object = None) -> Any:
        """The parameter of a name, or the default."""
        return getattr(self, key) if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, which is the default from now on if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """The parameter of a name, which is taken out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """The last name with its parameter, which is taken out."""
        key = next(reversed(self), None)
        if key is None:
            raise KeyError("popitem(): the ParameterDict is empty")
        return key, self.pop(key)

    def clear(self) -> None:
        """Take everything out."""
        for key in self:
            del self[key]

    def update(self, parameters: object) -> None:
        """Take over what another dictionary has, or pairs of names and parameters."""
        if not isinstance(parameters, (Mapping, ParameterDict, Iterable)):
            kind = type(parameters).__name__
            raise TypeError(
                f"ParametersDict.update should be called with an iterable of key/value pairs, but got {kind}"
            )
        for key, value in dict(parameters).items():
            self[key] = value

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return type(self)(dict(self))

    def fromkeys(self, keys: Iterable[str], default: object = None) -> ParameterDict:
        """A dictionary of these names."""
        return type(self)(dict.fromkeys(keys, default))

    def __or__(self, other: Mapping[str, object]) -> ParameterDict:
        return type(self)({**self, **other})

    def __ror__(self, other: Mapping[str, object]) -> ParameterDict:
        return type(self)({**other, **self})

    def __ior__(self, other: Mapping[str, object]) -> ParameterDict:
        self.update(other)
        return self
