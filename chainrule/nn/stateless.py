"""Modules without parameters, generated from the functions of :mod:`chainrule.nn.functional`."""

from __future__ import annotations

import inspect
from typing import Any

from chainrule._src.arrays.types import AnyFunction
from chainrule._src.ops import shaping
from chainrule._src.tape.tensor import Tensor
from chainrule.nn import functional as F
from chainrule.nn.module import Module

#: PyTorch's modules that only call a function. The name without underscores finds it (``BCE``: ``binary_cross_entropy``).
_OF_FUNCTIONS = """
ReLU ReLU6 ELU CELU SELU GELU SiLU Mish LeakyReLU RReLU GLU Hardtanh Hardsigmoid Hardswish Hardshrink Softshrink Tanhshrink
Softplus Softsign Sigmoid LogSigmoid Tanh Threshold Softmax LogSoftmax Softmin
Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout
MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
PixelShuffle PixelUnshuffle ChannelShuffle Fold Unfold Upsample LocalResponseNorm CosineSimilarity PairwiseDistance
L1Loss MSELoss CrossEntropyLoss NLLLoss KLDivLoss BCELoss BCEWithLogitsLoss HuberLoss SmoothL1Loss PoissonNLLLoss
GaussianNLLLoss SoftMarginLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss HingeEmbeddingLoss
CosineEmbeddingLoss MarginRankingLoss TripletMarginLoss TripletMarginWithDistanceLoss
"""

#: Function arguments that are passed in each call of the module. ``_NO_OPTIONS`` are not options of a module either.
_DATA = {
    "input",
    "target",
    "input1",
    "input2",
    "x1",
    "x2",
    "var",
    "anchor",
    "positive",
    "negative",
    "indices",
    "output_size",
}
_NO_OPTIONS = {"training", "out", "_stacklevel", "dtype"}


class _OfFunction(Module):
    """A module that calls a function with its call arguments and the options of its constructor."""

    _function: AnyFunction
    _options: inspect.Signature
    _trains: bool

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()
        bound = self._options.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        if self.__dict__.get("stride", 0) is None:
            self.stride = self.kernel_size  # the default of pooling

    def forward(self, *args: object, **kwargs: Any) -> Any:
        """Call the function."""
        options = {name: getattr(self, name) for name in self._options.parameters}
        if self._trains:
            options["training"] = self.training
        return type(self)._function(*args, **options, **kwargs)

    def extra_repr(self) -> str:
        """Return the options; for losses the empty string, as in PyTorch."""
        hidden = {"return_indices", "count_include_pad", "divisor_override"}
        shown = {n: getattr(self, n) for n in self._options.parameters if n not in hidden}
        if "reduction" in shown:
            return ""
        return ", ".join(
            f"{n}={value!r}" for n, value in shown.items() if not (n == "inplace" and not self._trains and not value)
        )


def _of_function(name: str) -> type[Module]:
    """Return the module class for PyTorch's name of it."""
    functions = {function.replace("_", ""): function for function in vars(F) if not function.endswith("_")}
    key = name.lower().replace("bce", "binarycrossentropy").replace("upsample", "interpolate")
    function = getattr(F, functions.get(key) or functions[key.removesuffix("loss")])
    parameters = inspect.signature(function).parameters
    # output_size is an option of adaptive pooling, but a call argument of unpooling
    data = _DATA - ({"output_size"} if name.startswith(("Adaptive", "Fold")) else set())
    options = [p for n, p in parameters.items() if n not in data | _NO_OPTIONS]
    options.sort(key=lambda p: p.name == "ceil_mode" and "return_indices" in parameters)  # PyTorch's order of the two
    members = {
        "_function": staticmethod(function),
        "_options": inspect.Signature(options),
        "__signature__": inspect.Signature(options),
        "_trains": "training" in parameters,
        "__doc__": f":func:`nn.functional.{function.__name__}` as a module.",
        "__module__": "chainrule.nn",
    }
    return type(name, (_OfFunction,), members)


globals().update({name: _of_function(name) for name in _OF_FUNCTIONS.split()})


def _format_attributes(module: Module, *names: str) -> str:
    return ", ".join(f"{name}={getattr(module, name)}" for name in names)


class Identity(Module):
    """The identity. Constructor arguments are ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Flatten(Module):
    """A layer that merges axes: by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the flattened input."""
        return shaping.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the axes."""
        return _format_attributes(self, "start_dim", "end_dim")


class Unflatten(Module):
    """A layer that splits one axis into several."""

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with more axes."""
        return shaping.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the axis and its parts."""
        return _format_attributes(self, "dim", "unflattened_size")
