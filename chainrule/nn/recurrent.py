"""Recurrent layers: loops over time of one cell, in several layers and in one or both directions.

``chainrule.nn`` exports these classes.

A cell is a function of the affine maps of input and state. The layers (``RNN``, ``LSTM``, ``GRU``) and the modules for a
single step (``RNNCell``, ...) share the cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule._src.arrays.device import DeviceLike
from chainrule._src.arrays.types import DTypeLike, Params
from chainrule._src.ops import creation, joining
from chainrule._src.ops import elementwise as ew
from chainrule._src.tape.tensor import Tensor
from chainrule.nn import functional as F
from chainrule.nn import init
from chainrule.nn.module import Module
from chainrule.nn.parameter import Parameter
from chainrule.nn.utils.rnn import PackedSequence

HiddenState = tuple[Tensor, ...]


def _tanh(x: Tensor, h: Tensor, state: HiddenState) -> HiddenState:
    return (ew.tanh(x + h),)


def _relu(x: Tensor, h: Tensor, state: HiddenState) -> HiddenState:
    return (F.relu(x + h),)


def _lstm(x: Tensor, h: Tensor, state: HiddenState) -> HiddenState:
    """Apply the input, forget, cell and output gates (Hochreiter and Schmidhuber, 1997; with a forget gate)."""
    i, f, g, o = (x + h).chunk(4, -1)
    c = ew.sigmoid(f) * state[1] + ew.sigmoid(i) * ew.tanh(g)
    return ew.sigmoid(o) * ew.tanh(c), c


def _gru(x: Tensor, h: Tensor, state: HiddenState) -> HiddenState:
    """Apply the reset, update and new gates (Cho and others, 2014)."""
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), h.chunk(3, -1)
    z, n = ew.sigmoid(xz + hz), ew.tanh(xn + ew.sigmoid(xr + hr) * hn)
    return ((state[0] - n) * z + n,)


#: For each kind of cell: the number of gates, the number of state tensors, and the step function.
_CELLS: dict[str, tuple[int, int, Callable[[Tensor, Tensor, HiddenState], HiddenState]]] = {
    "RNN_TANH": (1, 1, _tanh),
    "RNN_RELU": (1, 1, _relu),
    "LSTM": (4, 2, _lstm),
    "GRU": (3, 1, _gru),
}


def _kind_of(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
    return f"RNN_{nonlinearity.upper()}"


class _Recurrent(Module):
    """The base of layers and cells: their parameters and states."""

    hidden_size: int
    mode: str

    def _weights(self, suffix: str, inputs: int, bias: bool, factory: Params) -> None:
        rows = _CELLS[self.mode][0] * self.hidden_size
        shapes = {
            "weight_ih": (rows, inputs),
            "weight_hh": (rows, self.hidden_size),
            "bias_ih": (rows,),
            "bias_hh": (rows,),
        }
        for name, shape in shapes.items():
            made = Parameter(creation.empty(*shape, **factory)) if bias or name.startswith("weight") else None
            if made is not None or not suffix:
                self.register_parameter(name + suffix, made)

    def _parameters_of(self, suffix: str) -> tuple[Any, ...]:
        return tuple(getattr(self, name + suffix, None) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))

    def reset_parameters(self) -> None:
        """Fill the parameters with uniform numbers between ±1/√hidden_size."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _state(self, given: object, shape: tuple[int, ...], like: Tensor) -> list[Tensor]:
        """Return the tensors of the state: the given ones after checks, or zeros."""
        count = _CELLS[self.mode][1]
        if given is None:
            return [like.new_zeros(shape) for _ in range(count)]
        state = [given] if isinstance(given, Tensor) else list(given)
        if len(state) != count or any(not isinstance(h, Tensor) for h in state):
            raise RuntimeError(
                f"{type(self).__name__}: the state is {'one tensor' if count == 1 else 'a pair of tensors'}"
            )
        for h in state:
            if tuple(h.shape) != shape:
                raise RuntimeError(f"Expected hidden size {shape}, got {list(h.shape)}")
        return state

    def _check_width(self, input: Tensor, width: int) -> None:
        if not isinstance(input, Tensor):
            raise TypeError(f"{type(self).__name__} takes a tensor or a packed sequence, not {type(input).__name__}")
        if input.shape[-1] != width:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {width}, got {input.shape[-1]}")


class RNNBase(_Recurrent):
    """The base of recurrent layers.

    Args:
        mode: the kind of cell, ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"`` or ``"GRU"``.
        input_size, hidden_size: lengths of the last axis of the input and of the state.
        num_layers: the number of layers; each takes the output of the previous one.
        bias: whether there are biases.
        batch_first: the batch is the first axis of input and output, and time the second.
        dropout: the probability of zeros between layers, in training mode.
        bidirectional: a second cell runs backwards in time; the outputs are concatenated.
        proj_size: not supported.
        device, dtype: device and dtype of the parameters.
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if proj_size:
            raise NotImplementedError(
                f"{type(self).__name__}: proj_size is not supported: call nn.Linear on the output"
            )
        if not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(f"{'hidden_size' if hidden_size <= 0 else 'num_layers'} must be greater than zero")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size, factory = proj_size, {"device": device, "dtype": dtype}
        for layer in range(num_layers):
            inputs = hidden_size * (1 + bidirectional) if layer else input_size
            for suffix in self._suffixes(layer):
                self._weights(suffix, inputs, bias, factory)
        self._flat_weights_names = list(self._parameters)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Return the parameters of each layer and direction."""
        suffixes = [suffix for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        return [[w for w in self._parameters_of(suffix) if w is not None] for suffix in suffixes]

    def flatten_parameters(self) -> None:
        """Do nothing: weights need no flattening on the CPU."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the outputs of the last layer at all time steps, and the last state of each layer.

        Args:
            input: of shape (time, batch, input_size), or (batch, time, input_size) with ``batch_first``; or (time, input_size);
                or a ``nn.utils.rnn.PackedSequence``. Then the outputs are packed, too.
            hx: the initial state (num_layers · directions, batch, hidden_size), for an LSTM a pair; zeros by default.
        """
        count = self.num_layers * (1 + self.bidirectional)
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx, count)
        self._check_width(input, self.input_size)
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        one = input.dim() == 2
        batch_axis = 0 if self.batch_first and not one else 1
        shape = (count, self.hidden_size) if one else (count, input.shape[batch_axis], self.hidden_size)
        first = [h.unsqueeze(1) if one else h for h in self._state(hx, shape, input)]
        x = input.unsqueeze(1) if one else input.transpose(0, 1) if self.batch_first else input
        x, after = self._layers(x, first, self._run)
        after = [h.squeeze(1) if one else h for h in after]
        out = x.squeeze(1) if one else x.transpose(0, 1) if self.batch_first else x
        return out, tuple(after) if self.mode == "LSTM" else after[0]

    def _forward_packed(self, input: PackedSequence, hx: Any, count: int) -> tuple[PackedSequence, Any]:
        self._check_width(input.data, self.input_size)
        sizes = input.batch_sizes.tolist()
        first = self._state(hx, (count, sizes[0], self.hidden_size), input.data)
        if hx is not None and input.sorted_indices is not None:
            first = [h.index_select(1, input.sorted_indices) for h in first]

        def run(x: Tensor, state: HiddenState, suffix: str, backwards: bool) -> tuple[Tensor, HiddenState]:
            return self._run_packed(x, sizes, state, suffix, backwards)

        out, after = self._layers(input.data, first, run)
        if input.unsorted_indices is not None:
            after = [h.index_select(1, input.unsorted_indices) for h in after]
        return input.with_data(out), tuple(after) if self.mode == "LSTM" else after[0]

    def _layers(self, x: Tensor, first: list[Tensor], run: Any) -> tuple[Tensor, list[Tensor]]:
        """Run all layers; return the outputs of the last one, and the tensors of the final states."""
        last: list[HiddenState] = []
        for layer in range(self.num_layers):
            outputs = []
            for backwards, suffix in enumerate(self._suffixes(layer)):
                output, state = run(x, tuple(h[len(last)] for h in first), suffix, bool(backwards))
                outputs.append(output)
                last.append(state)
            x = joining.cat(outputs, -1) if self.bidirectional else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, [joining.stack(parts) for parts in zip(*last, strict=True)]

    def _run_packed(
        self, x: Tensor, sizes: list[int], state: HiddenState, suffix: str, backwards: bool
    ) -> tuple[Tensor, HiddenState]:
        """Run one cell over packed sequences; return its outputs in time order, and the final state of each sequence."""
        w, u, b, c = self._parameters_of(suffix)
        step, initial, ended, outputs = _CELLS[self.mode][2], state, [], []
        state = tuple(h[: sizes[-1 if backwards else 0]] for h in initial)
        inputs = F.linear(x, w, b).split(sizes)
        for gates in inputs[::-1] if backwards else inputs:
            active, rows = len(gates), len(state[0])
            if active < rows:  # sequences end
                ended.append(tuple(h[active:] for h in state))
                state = tuple(h[:active] for h in state)
            elif active > rows:  # backwards, longer sequences start later
                state = tuple(joining.cat([h, start[rows:active]]) for h, start in zip(state, initial, strict=True))
            state = step(gates, F.linear(state[0], u, c), state)
            outputs.append(state[0])
        final = tuple(joining.cat(parts) for parts in zip(state, *ended[::-1], strict=True))
        return joining.cat(outputs[::-1] if backwards else outputs), final

    def _run(self, x: Tensor, state: HiddenState, suffix: str, backwards: bool) -> tuple[Tensor, HiddenState]:
        """Run one cell over time; return its outputs in the order of the steps, and the final state."""
        w, u, b, c = self._parameters_of(suffix)
        step, states = _CELLS[self.mode][2], []
        inputs = F.linear(x, w, b).unbind(0)
        for gates in inputs[::-1] if backwards else inputs:
            state = step(gates, F.linear(state[0], u, c), state)
            states.append(state)
        if not states:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        return joining.stack([state[0] for state in (states[::-1] if backwards else states)]), states[-1]

    def extra_repr(self) -> str:
        """Return the sizes and the options that differ from the defaults."""
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        options = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *options])


class RNN(RNNBase):
    """A layer of h ← tanh(W x + b + U h + c), or relu; other arguments are those of :class:`RNNBase`.

    >>> import chainrule as cr
    >>> out, h = cr.nn.RNN(3, 4)(cr.zeros(7, 2, 3))
    >>> out.shape, h.shape
    (torch.Size([7, 2, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args: Any, **kwargs: Any
    ) -> None:  # fmt: skip
        self.__dict__["nonlinearity"] = nonlinearity
        super().__init__(_kind_of(nonlinearity), input_size, hidden_size, num_layers, *args, **kwargs)


class LSTM(RNNBase):
    """A long short-term memory layer, whose state is a pair; arguments are those of :class:`RNNBase`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """A layer of gated recurrent units; arguments are those of :class:`RNNBase`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(_Recurrent):
    """The base of modules for a single step.

    Args:
        input_size, hidden_size: lengths of the last axis of the input and of the state.
        bias: whether there are biases.
        device, dtype: device and dtype of the parameters.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self._weights("", input_size, bias, {"device": device, "dtype": dtype})
        self.reset_parameters()

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the next state (a pair for an LSTM) from the input (batch, input_size) or (input_size,) and the state."""
        self._check_width(input, self.input_size)
        if input.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        w, u, b, c = self._parameters_of("")
        state = tuple(self._state(hx, (*input.shape[:-1], self.hidden_size), input))
        after = _CELLS[self.mode][2](F.linear(input, w, b), F.linear(state[0], u, c), state)
        return after if self.mode == "LSTM" else after[0]

    def extra_repr(self) -> str:
        """Return the sizes and the options that differ from the defaults."""
        other = getattr(self, "nonlinearity", "tanh")
        options = ["bias=False"] * (not self.bias) + [f"nonlinearity={other}"] * (other != "tanh")
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *options])


class RNNCell(RNNCellBase):
    """One step of an :class:`RNN`: tanh(W x + b + U h + c), or relu."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:  # fmt: skip
        self.__dict__.update(nonlinearity=nonlinearity, mode=_kind_of(nonlinearity))
        super().__init__(input_size, hidden_size, bias, device, dtype)


class LSTMCell(RNNCellBase):
    """One step of an :class:`LSTM`; arguments are those of :class:`RNNCellBase`."""

    mode = "LSTM"


class GRUCell(RNNCellBase):
    """One step of a :class:`GRU`; arguments are those of :class:`RNNCellBase`."""

    mode = "GRU"
