"""``Module``: the base class of layers and models, which owns parameters, buffers and submodules.

A module stores these in three dictionaries by attribute name (``_parameters``, ``_buffers``, ``_modules``). All other
methods, such as ``state_dict`` and ``to``, read these dictionaries.
"""

from __future__ import annotations

import functools
import importlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from chainrule._src.api.grad_mode import no_grad
from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import AnyFunction, DTypeLike, Params
from chainrule._src.tape.node import RemovableHandle
from chainrule._src.tape.tensor import Tensor
from chainrule.nn.parameter import Parameter

#: Each dictionary's name, with its element's name and PyTorch's type, for error messages.
_REGISTRIES = {
    "_parameters": ("parameter", "torch.nn.Parameter"),
    "_buffers": ("buffer", "torch.Tensor"),
    "_modules": ("child module", "torch.nn.Module"),
}


class IncompatibleKeys(NamedTuple):
    """The result of ``load_state_dict``: names missing in the state dict, and names that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _add_hook(hooks: dict[int, Any], hook: AnyFunction, first: bool) -> RemovableHandle:
    others = {**hooks} if first else {}
    handle = RemovableHandle(hooks, hook)
    for key in others:  # move the older hooks behind the new one
        hooks[key] = hooks.pop(key)
    return handle


class Module:
    """The base class of layers and models. ``__init__`` assigns parameters and submodules; ``forward`` computes.

    >>> import chainrule as cr
    >>> class Line(cr.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = cr.nn.Parameter(cr.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.slope * x
    >>> line = Line()
    >>> line(cr.tensor(3.0)).backward()
    >>> [(name, p.grad) for name, p in line.named_parameters()]
    [('slope', tensor(3.))]
    """

    training: bool
    _compiled_call: Any = None  # the compiled form of `_call`, set by `compile`
    _of_compiled: ClassVar[Any]  # wraps the result of `chainrule.compile(module)`
    call_super_init = False  # whether __init__ passes its arguments to the next base class (multiple inheritance)

    def __init__(self, *args: object, **kwargs: object) -> None:
        if (args or kwargs) and not self.call_super_init:
            given = (
                f"an unexpected keyword argument {next(iter(kwargs))!r}"
                if kwargs
                else f"{len(args)} unexpected arguments"
            )
            raise TypeError(
                f"{type(self).__name__}.__init__() got {given}: Module.__init__ takes none, unless the class sets "
                "call_super_init = True, which passes them to its other base class"
            )
        self.__dict__.update(
            {name: {} for name in _REGISTRIES}, _transient=set(), _hooks={}, _pre_hooks={}, training=True
        )
        self.__dict__.update(_backward_hooks={}, _backward_pre_hooks={}, _load_hooks={}, _after_load_hooks={})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; subclasses implement this method."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: object, **kwargs: object) -> Any:
        compiled = self._compiled_call
        return self._call(*args, **kwargs) if compiled is None else compiled(*args, **kwargs)

    def _call(self, *args: object, **kwargs: object) -> Any:
        for pre_hook in [*self._pre_hooks.values()]:
            changed = pre_hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        backward = None
        if self._backward_hooks or self._backward_pre_hooks:
            hooks = importlib.import_module("chainrule.nn.hooks")
            backward = hooks.BackwardHooks(self, [*self._backward_pre_hooks.values()], [*self._backward_hooks.values()])
            args = backward.wrap_inputs(args)
        out = self.forward(*args, **kwargs)
        for hook in [*self._hooks.values()]:
            changed = hook(self, args, out)
            out = out if changed is None else changed
        return out if backward is None else backward.wrap_outputs(out)

    def compile(self, *args: object, **kwargs: object) -> None:
        """Compile later calls, including hooks; the arguments are those of :func:`chainrule.compile`.

        The module stays the same object, and its parameters and state keep their names. Copies and pickles of it are
        not compiled.

        >>> import chainrule as cr
        >>> line = cr.nn.Linear(2, 1)
        >>> x = cr.ones(3, 2)
        >>> before = line(x)
        >>> line.compile()
        >>> cr.equal(line(x), before), list(line.state_dict())
        (True, ['weight', 'bias'])
        """
        compiled = importlib.import_module("chainrule._src.compiling").compile(self._call, *args, **kwargs)
        if compiled != self._call:  # compilation is not disabled
            compiled.name = type(self).__name__  # for messages
        self.__dict__["_compiled_call"] = compiled

    def __getstate__(self) -> Params:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled_call"}

    def register_forward_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each call; a result other than None replaces the output."""
        return RemovableHandle(self._hooks, hook)

    def register_forward_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(module, args)`` before each call; a result other than None replaces the arguments."""
        return RemovableHandle(self._pre_hooks, hook)

    def register_full_backward_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` once the gradients of a call's positional arguments are computed.

        Both are tuples, with None for values that are not tensors. A result other than None replaces the gradients of
        the arguments.

        >>> import chainrule as cr
        >>> layer = cr.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda module, at_inputs, at_outputs: print(at_outputs))
        >>> layer(cr.ones(1, 2, requires_grad=True)).backward()
        (tensor([[1.]]),)
        """
        return _add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before a call's backward pass; a result other than None replaces it."""
        return _add_hook(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Raise: PyTorch's deprecated form gets only the gradients of the module's last operation."""
        raise NotImplementedError(
            "register_backward_hook shows the gradients of the module's last operation, not of its arguments: "
            "register_full_backward_hook(hook) shows these"
        )

    # -- attributes ---------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                return self.__dict__[registry][name]
        unready = "" if "_modules" in self.__dict__ else ": call super().__init__() before anything is assigned"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{unready}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, (Parameter, Module)):
            self._register_value("_parameters" if isinstance(value, Parameter) else "_modules", name, value)
            return
        old = next((registry for registry in _REGISTRIES if name in self.__dict__.get(registry, ())), None)
        if old is None:
            object.__setattr__(self, name, value)
        elif value is None or (old == "_buffers" and isinstance(value, Tensor)):
            self.__dict__[old][name] = value
        else:
            what, wanted = _REGISTRIES[old]
            raise TypeError(
                f"cannot assign {type(value).__name__!r} as {what} {name!r} ({wanted} or None expected). nn.Parameter(value) "
                "makes a parameter; `with no_grad(): p.copy_(value)` writes new numbers into one."
            )

    def _register_value(self, where: str, name: str, value: object) -> None:
        """Store a value in a registry, and remove the name from the others."""
        if where not in self.__dict__:
            raise AttributeError(
                f"cannot assign {where[1:]} before Module.__init__() call: super().__init__() comes first"
            )
        for holder in (self.__dict__, *(self.__dict__[registry] for registry in _REGISTRIES if registry != where)):
            holder.pop(name, None)
        self._transient.discard(name)
        self.__dict__[where][name] = value

    def __delattr__(self, name: str) -> None:
        holders = (self.__dict__.get(registry, {}) for registry in _REGISTRIES)
        holder = next((holder for holder in holders if name in holder), None)
        if holder is None:
            object.__delattr__(self, name)
        else:
            del holder[name]

    def __dir__(self) -> list[str]:
        return sorted(
            {*super().__dir__(), *itertools.chain(*(self.__dict__.get(registry, ()) for registry in _REGISTRIES))}
        )

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Register a parameter; None reserves the name."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign {type(param).__name__!r} object to parameter {name!r}: write nn.Parameter(...)"
            )
        self._register_value("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not a parameter; ``persistent=False`` leaves it out of ``state_dict``."""
        self._register_value("_buffers", name, tensor)
        if not persistent:
            self._transient.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a submodule."""
        self._register_value("_modules", name, module)

    add_module = register_module

    # -- iteration ------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and all submodules, with their dotted names."""
        memo = set() if memo is None else memo
        if remove_duplicate and self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def places(
        self, registry: tuple[str, ...] = ("_parameters", "_buffers"), prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Module, dict[str, Any], str]]:
        """Iterate over registered values: the dotted name, the module, its dictionary, and the key in it."""
        modules = self.named_modules(prefix=prefix, remove_duplicate=False) if recurse else [(prefix, self)]
        for where, module in modules:
            for kind in registry:
                for name in module.__dict__[kind]:
                    yield f"{where}.{name}" if where else name, module, module.__dict__[kind], name

    def _named(self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[object] = set()
        for dotted, _, holder, name in self.places((registry,), prefix, recurse):
            value = holder[name]
            if value is not None and not (remove_duplicate and value in seen):
                seen.add(value)
                yield dotted, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over all parameters with their dotted names; a shared parameter is yielded once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over all buffers with their dotted names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the direct submodules, with their names."""
        return self._named("_modules", "", False, True)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over all parameters, as optimizers take them."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over all buffers."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules."""
        return (module for _, module in self.named_children())

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all submodules."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path of names such as ``"layers.0"``; ``""`` is this module.

        Raises:
            AttributeError: there is no such module.
        """
        module = self
        for name in target.split(".") if target else ():
            if name not in module._modules:
                raise AttributeError(
                    f"{type(module).__name__} has no attribute `{name}`: {target!r} is not the path of a module"
                )
            module = module._modules[name]
        return module

    def get_parameter(self, target: str) -> Tensor:
        """Return the parameter at a path of names such as ``"layers.0.weight"``."""
        return self._get_registered("parameter", "_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path of names such as ``"norm.running_mean"``."""
        return self._get_registered("buffer", "_buffers", target)

    def _get_registered(self, kind: str, registry: str, target: str) -> Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found: Tensor | None = getattr(module, registry).get(name)
        if found is None:
            raise AttributeError(
                f"{module.__class__.__name__} has no {kind} `{name}`: {target!r} is not the path of a {kind}"
            )
        return found

    def _get_name(self) -> str:
        return self.__class__.__name__

    def apply(self, fn: Callable[[Module], object]) -> Module:
        """Call ``fn`` with every submodule, then with this module; used to initialize parameters."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # -- state ----------------------------------------------------------------------------------------------------

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """Return parameters and buffers by dotted name, detached unless ``keep_vars``; they share the module's memory."""
        found: OrderedDict[str, Tensor] = OrderedDict()
        for dotted, module, holder, name in self.places(prefix=prefix.removesuffix(".")):
            if holder[name] is not None and name not in module._transient:
                found[dotted] = holder[name] if keep_vars else holder[name].detach()
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Write the tensors of a ``state_dict`` into the parameters and buffers of the same names.

        Hooks of ``register_load_state_dict_pre_hook`` may change a copy of ``state_dict`` first.

        Args:
            state_dict: the result of :meth:`state_dict`, or of ``chainrule.load``.
            strict: raise for missing or unexpected names, instead of returning them.
            assign: replace the module's tensors by the given ones, instead of copying their elements.

        Raises:
            RuntimeError: names (if ``strict``) or shapes differ; all of them are listed.
        """
        own, state_dict = self.state_dict(keep_vars=True), OrderedDict(state_dict)
        keys, reported = IncompatibleKeys([], []), list[str]()
        modules = [*self.named_modules(remove_duplicate=False)]
        for name, module in modules:
            for hook in [*module._load_hooks.values()]:
                hook(state_dict, f"{name}." if name else "", {}, strict, *keys, reported)
        keys.missing_keys.extend(k for k in own if k not in state_dict)
        keys.unexpected_keys.extend(k for k in state_dict if k not in own)
        wrong = reported + [
            f"{word} key(s) in state_dict: {', '.join(f'{k!r}' for k in names)}.".replace("'", '"')
            for word, names in (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys))
            if strict and names
        ]
        both = [(name, own[name], value) for name, value in state_dict.items() if name in own]
        wrong += [
            f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, the shape in current "
            f"model is {current.shape}."
            for name, current, value in both
            if value.shape != current.shape
        ]
        if wrong:
            raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *wrong]))
        places = {dotted: (holder, name) for dotted, _, holder, name in self.places()}
        for dotted, current, value in both:
            holder, name = places[dotted]
            if assign:
                holder[name] = Parameter(value, current.requires_grad) if isinstance(current, Parameter) else value
            else:
                with no_grad():
                    current.copy_(value)
        for _, module in modules:
            for hook in [*module._after_load_hooks.values()]:
                hook(module, keys)
        return keys

    def register_load_state_dict_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call a hook before ``load_state_dict`` reads the entries of this module.

        Args:
            hook: ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``,
                which may change the dictionary and the lists. The metadata is empty.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: AnyFunction, with_module: bool = False) -> RemovableHandle:
        return RemovableHandle(self._load_hooks, functools.partial(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after ``load_state_dict``."""
        return RemovableHandle(self._after_load_hooks, hook)

    # -- modes, dtypes, gradients -----------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Set ``training`` for this module and all submodules; dropout and batch norm read it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Call ``train(False)``: switch this module and all submodules to evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set ``requires_grad`` for all parameters; False freezes them."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None, or to zero."""
        for p in self.parameters():
            if set_to_none or p.grad is None:
                p.grad = None
            else:
                p.grad = p.grad.detach().zero_()

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Convert floating-point parameters and buffers as ``Tensor.to`` does; the tensors stay the same objects.

        In PyTorch, tensors on the device "meta" have no values. Here ``to("meta")`` keeps the values: the shapes are
        the same, and so are calls with other parameters.
        """
        if "meta" in map(str, (*args, kwargs.get("device"))):
            return self
        for tensor in (*self.parameters(), *self.buffers()):
            moved = tensor.detach().to(*args, **kwargs)
            if tensor.is_floating_point() or moved.dtype == tensor.dtype:
                tensor.data = moved
                if tensor.grad is not None:
                    tensor.grad = tensor.grad.to(*args, **kwargs)
        return self

    def float(self) -> Module:
        """Convert parameters and buffers to float32."""
        return self.to("float32")

    def double(self) -> Module:
        """Convert parameters and buffers to float64."""
        return self.to("float64")

    def half(self) -> Module:
        """Convert parameters and buffers to float16."""
        return self.to("float16")

    def type(self, dst_type: DTypeLike) -> Module:
        """Convert parameters and buffers to a dtype, including integer ones."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.data = tensor.detach().type(dst_type)
            if tensor.grad is not None:
                tensor.grad = tensor.grad.type(dst_type)
        return self

    def cpu(self) -> Module:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self, device: DeviceLike = None) -> Module:
        """Move parameters and buffers to a GPU: the current one, or the one with the given index.

        Raises:
            RuntimeError: there is no such GPU.
        """
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    # -- printing -------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the text that ``repr`` shows between the parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = self.extra_repr().splitlines()
        below = [f"({name}): {module!r}" for name, module in self._modules.items()]
        if not below and len(lines) < 2:
            return f"{type(self).__name__}({''.join(lines)})"
        text = "\n".join([*lines, *below]).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {text}\n)"


class OptimizedModule(Module):
    """The compiled form of a module. It owns the module and forwards attributes to it.

    Attributes:
        _orig_mod: the module that was compiled.
    """

    def __init__(self, compiled: Any) -> None:
        super().__init__()
        self.__dict__["_compiled"] = compiled
        self._orig_mod = compiled.function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled module."""
        return self._compiled(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Return ``training`` of the original module."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod" or name.startswith("__"):
            return super().__getattr__(name)
        module = self._orig_mod
        return getattr(module if hasattr(module, name) else self._compiled, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_orig_mod":
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __reduce__(self) -> tuple[object, ...]:
        return _compiled, (self._compiled,)


def _compiled(compiled: Any) -> Any:
    """Wrap a compiled module in :class:`OptimizedModule`; return a compiled function unchanged."""
    return OptimizedModule(compiled) if isinstance(compiled.function, Module) else compiled


Module._of_compiled = _compiled
