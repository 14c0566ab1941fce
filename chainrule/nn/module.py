"""Modules: functions that own tensors, their parameters and buffers, and other modules.

A module keeps what it owns in three dictionaries, by attribute name. Everything else here reads them.
"""

from __future__ import annotations

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

#: The dictionaries, and what belongs there.
_HELD = {
    "_parameters": ("parameter", "torch.nn.Parameter"),
    "_buffers": ("buffer", "torch.Tensor"),
    "_modules": ("child module", "torch.nn.Module"),
}


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict(strict=False)`` did not find, and what it had no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _registered(hooks: dict[int, Any], hook: AnyFunction, first: bool) -> RemovableHandle:
    others = {**hooks} if first else {}
    handle = RemovableHandle(hooks, hook)
    for key in others:  # behind the new one
        hooks[key] = hooks.pop(key)
    return handle


class Module:
    """The base of layers and models: say in ``__init__`` what it owns, and in ``forward`` what it computes.

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
    _compiled_call: Any = None  # what calls go to after `compile`
    _of_compiled: ClassVar[Any]  # what `compile` makes of a compiled one
    call_super_init = False  # whether arguments go on to the next class, for a module that is something else as well

    def __init__(self, *args: object, **kwargs: object) -> None:
        if (args or kwargs) and not self.call_super_init:
            given = (
                f"an unexpected keyword argument {next(iter(kwargs))!r}"
                if kwargs
                else f"{len(args)} unexpected arguments"
            )
            raise TypeError(
                f"{type(self).__name__}.__init__() got {given}: Module.__init__ takes none, unless the class says "
                "call_super_init = True, which hands them on to its other base"
            )
        self.__dict__.update({name: {} for name in _HELD}, _transient=set(), _hooks={}, _pre_hooks={}, training=True)
        self.__dict__.update(_backward_hooks={}, _backward_pre_hooks={})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes, which the subclass says."""
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
            args = backward.around(args)
        out = self.forward(*args, **kwargs)
        for hook in [*self._hooks.values()]:
            changed = hook(self, args, out)
            out = out if changed is None else changed
        return out if backward is None else backward.behind(out)

    def compile(self, *args: object, **kwargs: object) -> None:
        """Have calls recorded and replayed from now on, with hooks; the arguments are those of :func:`chainrule.compile`.

        The module stays what it is: its parameters and state keep their names. Copies and pickles of it are not compiled.

        >>> import chainrule as cr
        >>> line = cr.nn.Linear(2, 1)
        >>> x = cr.ones(3, 2)
        >>> before = line(x)
        >>> line.compile()
        >>> cr.equal(line(x), before), list(line.state_dict())
        (True, ['weight', 'bias'])
        """
        compiled = importlib.import_module("chainrule._src.compiling").compile(self._call, *args, **kwargs)
        if compiled != self._call:  # it is not disabled
            compiled.name = type(self).__name__  # for messages
        self.__dict__["_compiled_call"] = compiled

    def __getstate__(self) -> Params:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled_call"}

    def register_forward_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each call; what it returns, if anything, is the output then."""
        return RemovableHandle(self._hooks, hook)

    def register_forward_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call ``hook(module, args)`` before each call; what it returns, if anything, are the arguments then."""
        return RemovableHandle(self._pre_hooks, hook)

    def register_full_backward_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of a call's positional arguments are known.

        Both are tuples, with None for what is no tensor. What it returns, if anything, are the gradients of the arguments then.

        >>> import chainrule as cr
        >>> layer = cr.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda module, at_inputs, at_outputs: print(at_outputs))
        >>> layer(cr.ones(1, 2, requires_grad=True)).backward()
        (tensor([[1.]]),)
        """
        return _registered(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before a call's backward pass; what it returns is passed on instead."""
        return _registered(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook: AnyFunction) -> RemovableHandle:
        """PyTorch's old form, which sees the last operation's gradients alone: refused."""
        raise NotImplementedError(
            "register_backward_hook shows the gradients of the module's last operation, not of its arguments: "
            "register_full_backward_hook(hook) shows these"
        )

    # -- attributes ---------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        for held in _HELD:
            if name in self.__dict__.get(held, ()):
                return self.__dict__[held][name]
        unready = "" if "_modules" in self.__dict__ else ": call super().__init__() before anything is assigned"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{unready}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, (Parameter, Module)):
            self._hold("_parameters" if isinstance(value, Parameter) else "_modules", name, value)
            return
        old = next((held for held in _HELD if name in self.__dict__.get(held, ())), None)
        if old is None:
            object.__setattr__(self, name, value)
        elif value is None or (old == "_buffers" and isinstance(value, Tensor)):
            self.__dict__[old][name] = value
        else:
            what, wanted = _HELD[old]
            raise TypeError(
                f"cannot assign {type(value).__name__!r} as {what} {name!r} ({wanted} or None expected). nn.Parameter(value) "
                "makes a parameter; `with no_grad(): p.copy_(value)` writes new numbers into one."
            )

    def _hold(self, where: str, name: str, value: object) -> None:
        """Own a value under a name that means nothing else then."""
        if where not in self.__dict__:
            raise AttributeError(
                f"cannot assign {where[1:]} before Module.__init__() call: super().__init__() comes first"
            )
        for holder in (self.__dict__, *(self.__dict__[held] for held in _HELD if held != where)):
            holder.pop(name, None)
        self._transient.discard(name)
        self.__dict__[where][name] = value

    def __delattr__(self, name: str) -> None:
        holders = (self.__dict__.get(held, {}) for held in _HELD)
        holder = next((holder for holder in holders if name in holder), None)
        if holder is None:
            object.__delattr__(self, name)
        else:
            del holder[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *itertools.chain(*(self.__dict__.get(held, ()) for held in _HELD))})

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """Own a parameter; None keeps the name free for one."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign {type(param).__name__!r} object to parameter {name!r}: write nn.Parameter(...)"
            )
        self._hold("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Own a tensor that is no parameter; ``persistent=False`` leaves it out of ``state_dict``."""
        self._hold("_buffers", name, tensor)
        if not persistent:
            self._transient.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Own another module."""
        self._hold("_modules", name, module)

    add_module = register_module

    # -- everything that is owned ---------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names."""
        memo = set() if memo is None else memo
        if remove_duplicate and self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def places(
        self, held: tuple[str, ...] = ("_parameters", "_buffers"), prefix: str = "", recurse: bool = True
    ) -> Iterator[tuple[str, Module, dict[str, Any], str]]:
        """Where what is owned is: its dotted name, the module, that module's dictionary, and the key there."""
        modules = self.named_modules(prefix=prefix, remove_duplicate=False) if recurse else [(prefix, self)]
        for where, module in modules:
            for kind in held:
                for name in module.__dict__[kind]:
                    yield f"{where}.{name}" if where else name, module, module.__dict__[kind], name

    def _named(self, held: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[object] = set()
        for dotted, _, holder, name in self.places((held,), prefix, recurse):
            value = holder[name]
            if value is not None and not (remove_duplicate and value in seen):
                seen.add(value)
                yield dotted, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All parameters with their dotted names; what several modules share comes once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted names."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below, with their names."""
        return self._named("_modules", "", False, True)

    def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
        """All parameters, as optimizers take them."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def children(self) -> Iterator[Module]:
        """The modules directly below."""
        return (module for _, module in self.named_children())

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """The module at a path of names such as ``"layers.0"``; of ``""`` this one.

        Raises:
            AttributeError: there is none.
        """
        module = self
        for name in target.split(".") if target else ():
            if name not in module._modules:
                raise AttributeError(
                    f"{type(module).__name__} has no attribute `{name}`: {target!r} is no path to a module"
                )
            module = module._modules[name]
        return module

    def get_parameter(self, target: str) -> Tensor:
        """The parameter at a path of names such as ``"layers.0.weight"``."""
        return self._at("parameter", "_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path of names such as ``"norm.running_mean"``."""
        return self._at("buffer", "_buffers", target)

    def _at(self, kind: str, held: str, target: str) -> Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found: Tensor | None = getattr(module, held).get(name)
        if found is None:
            raise AttributeError(f"{module.__class__.__name__} has no {kind} `{name}`: {target!r} is no path to one")
        return found

    def _get_name(self) -> str:
        return self.__class__.__name__

    def apply(self, fn: Callable[[Module], object]) -> Module:
        """Call ``fn`` with every module below, and last with this one: to initialize parameters, say."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # -- state ----------------------------------------------------------------------------------------------------

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """Parameters and buffers by name, detached (unless ``keep_vars``), sharing their memory; ``chainrule.save`` takes it."""
        found: OrderedDict[str, Tensor] = OrderedDict()
        for dotted, module, holder, name in self.places(prefix=prefix.removesuffix(".")):
            if holder[name] is not None and name not in module._transient:
                found[dotted] = holder[name] if keep_vars else holder[name].detach()
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Write the tensors of a ``state_dict`` into the parameters and buffers of the same names.

        Args:
            state_dict: what :meth:`state_dict` gave, or ``chainrule.load`` read.
            strict: raise for names that are missing or too many, instead of returning them.
            assign: take the tensors themselves, in place of writing their elements into ours.

        Raises:
            RuntimeError: names (if ``strict``) or shapes differ; all of them are listed.
        """
        own = self.state_dict(keep_vars=True)
        keys = IncompatibleKeys([k for k in own if k not in state_dict], [k for k in state_dict if k not in own])
        wrong = [
            f"{word} key(s) in state_dict: {', '.join(f'{k!r}' for k in names)}.".replace("'", '"')
            for word, names in (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys))
            if strict and names
        ]
        both = [(name, own[name], value) for name, value in state_dict.items() if name in own]
        wrong += [
            f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, the shape in current "
            f"model is {ours.shape}."
            for name, ours, value in both
            if value.shape != ours.shape
        ]
        if wrong:
            raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *wrong]))
        places = {dotted: (holder, name) for dotted, _, holder, name in self.places()}
        for dotted, ours, value in both:
            holder, name = places[dotted]
            if assign:
                holder[name] = Parameter(value, ours.requires_grad) if isinstance(ours, Parameter) else value
            else:
                with no_grad():
                    ours.copy_(value)
        return keys

    # -- modes, dtypes, gradients -----------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Module:
        """Set ``training``, which dropout and batch norm read, here and below."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """As ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Ask for the gradients of all parameters, or freeze them."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        for p in self.parameters():
            if set_to_none or p.grad is None:
                p.grad = None
            else:
                p.grad = p.grad.detach().zero_()

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Convert parameters and buffers of floats as ``Tensor.to`` does, in place: the tensors stay the same objects.

        On the device "meta", tensors of PyTorch have no numbers. Here the module keeps them: all else that programs
        ask of such a module, shapes and calls with other parameters, it can do.
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
        """Parameters and buffers as float32."""
        return self.to("float32")

    def double(self) -> Module:
        """Parameters and buffers as float64."""
        return self.to("float64")

    def half(self) -> Module:
        """Parameters and buffers as float16."""
        return self.to("float16")

    def type(self, dst_type: DTypeLike) -> Module:
        """Parameters and buffers in a dtype, those of integers, too."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.data = tensor.detach().type(dst_type)
            if tensor.grad is not None:
                tensor.grad = tensor.grad.type(dst_type)
        return self

    def cpu(self) -> Module:
        """Parameters and buffers on the CPU."""
        return self.to("cpu")

    def cuda(self, device: DeviceLike = None) -> Module:
        """Parameters and buffers on a GPU: the current one, or that of a number.

        Raises:
            RuntimeError: there is none.
        """
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    # -- printing -------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What is printed between the parentheses."""
        return ""

    def __repr__(self) -> str:
        lines = self.extra_repr().splitlines()
        below = [f"({name}): {module!r}" for name, module in self._modules.items()]
        if not below and len(lines) < 2:
            return f"{type(self).__name__}({''.join(lines)})"
        text = "\n".join([*lines, *below]).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {text}\n)"


class OptimizedModule(Module):
    """A module that computes what another does, faster. It owns that one, and has its attributes.

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
        """What the module gives."""
        return self._compiled(*args, **kwargs)

    @property
    def training(self) -> bool:
        """As the module that was compiled."""
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
    """The compiled module, if it is one that was compiled; else the compiled function."""
    return OptimizedModule(compiled) if isinstance(compiled.function, Module) else compiled


Module._of_compiled = _compiled
