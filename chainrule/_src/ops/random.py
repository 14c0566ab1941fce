"""Random tensors, drawn from ``default_generator`` or another generator; ``manual_seed`` seeds it.

``op`` makes these functions public. Distributions, dropout and ``nn.init`` draw with the same generator.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule._src.api.declare import op
from chainrule._src.api.operands import operand
from chainrule._src.arrays import gpu as gpus
from chainrule._src.arrays.any_array import scalar_to_array
from chainrule._src.arrays.device import DeviceLike, gpu_of
from chainrule._src.arrays.device import device as as_device
from chainrule._src.arrays.dtypes import as_dtype, default_dtype
from chainrule._src.arrays.types import (
    AnyArray,
    AnyFunction,
    DTypeLike,
    NumpyArray,
    NumpyDType,
    Params,
    ShapeLike,
    TensorLike,
)
from chainrule._src.messages import errors
from chainrule._src.ops import creation
from chainrule._src.ops import elementwise as ew
from chainrule._src.ops.arguments import placed, tensor_of, with_creation_keywords
from chainrule._src.ops.creation import _sizes, _wrap_new
from chainrule._src.tape import trace_hooks
from chainrule._src.tape.foreign import Foreign, gpu_number
from chainrule._src.tape.levels import STACK, Level
from chainrule._src.tape.protocol import ArrayLike, predicate_holds
from chainrule._src.tape.tensor import Tensor, attach_methods, wrap


class Generator:
    """A random number generator with its own state. Unless it is seeded, it starts from the system's entropy."""

    __module__ = "chainrule"

    def __init__(self, device: Any = "cpu") -> None:
        if gpu_of(device) is not None:
            raise NotImplementedError(
                "Generator(device='cuda'): random numbers on a GPU come from a single generator per GPU, seeded by "
                "cuda.manual_seed: omit generator="
            )
        self.device = as_device(device)
        self._seed: int | None = None
        self._state: np.random.Generator | None = None

    @property
    def _rng(self) -> np.random.Generator:
        if self._state is None:  # made at first use, because importing numpy.random is slow
            self._start(_entropy())
        assert self._state is not None
        return self._state

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._state = np.random.Generator(np.random.PCG64(seed % 2**64))

    def manual_seed(self, seed: int) -> Generator:
        """Restart from a seed."""
        _check_not_recorded("manual_seed")
        if not isinstance(seed, (int, np.integer)):
            raise TypeError(f"manual_seed(): argument 'seed' must be int, not {type(seed).__name__}")
        self._start(int(seed))
        return self

    def initial_seed(self) -> int:
        """Return the seed that the generator was started from."""
        _check_not_recorded("initial_seed")
        if self._seed is None:
            self._start(_entropy())
        return self._seed or 0

    def seed(self) -> int:
        """Restart from the system's entropy; return the seed."""
        seed = _entropy()
        self.manual_seed(seed)
        return seed

    def get_state(self) -> Params:
        """Return the state, for :meth:`set_state`."""
        _check_not_recorded("get_state")
        return self._get_state()

    def set_state(self, state: Params) -> Generator:
        """Restore a state."""
        _check_not_recorded("set_state")
        self._set_state(state)
        return self

    def _get_state(self) -> Any:
        return self._rng.bit_generator.state

    def _set_state(self, state: Params) -> None:
        self._rng.bit_generator.state = state


def _entropy() -> int:
    return int(np.random.SeedSequence().entropy) % 2**63  # type: ignore[arg-type]


def _check_not_recorded(name: str) -> None:
    """Raise in a trace, where access to a generator's state would happen only once."""
    if trace_hooks.is_tracing() and not trace_hooks.current_recorder().is_drawing:
        raise importlib.import_module("chainrule._src.interpreters.trace_types").Unrecordable(
            f"it reads or sets the state of a random number generator ({name}): do that outside of it"
        )


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator.

    >>> import chainrule as cr
    >>> _ = cr.manual_seed(0)
    >>> a = cr.rand(2)
    >>> _ = cr.manual_seed(0)
    >>> bool((a == cr.rand(2)).all())
    True
    """
    gpus.seed_generators(seed)
    return default_generator.manual_seed(seed)


def seed(*args: object) -> int:
    """Seed the default generator from the system's entropy; return the seed."""
    if args:
        raise TypeError(
            f"seed() takes 0 positional arguments but {len(args)} was given: use manual_seed({args[0]!r}) to set a seed"
        )
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Params:
    """Return the state of the default generator."""
    return default_generator.get_state()


def set_rng_state(state: Params) -> None:
    """Restore a state of the default generator."""
    default_generator.set_state(state)


def _different_levels() -> list[Level]:
    """Return the enclosing vmap levels with randomness "different", outermost first."""
    levels = [level for level in STACK.levels if level.size is not None]
    if any(level.randomness == "error" for level in levels):
        raise errors.random_in_vmap()
    return [level for level in levels if level.randomness == "different"]


def _drawn(shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], AnyArray]) -> AnyArray:
    """Return ``draw(shape)``; inside vmap, with an axis for each level with randomness "different"."""
    if not STACK.levels:
        return draw(shape)
    levels = _different_levels()
    shape = (*[level.size for level in levels if level.size is not None], *shape)
    data = trace_hooks.record_draw(draw, shape)
    for level in levels:
        data = level.interpreter(data, level)
    return data


def _rng(generator: Generator | None) -> np.random.Generator:
    if generator is None:
        generator = default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be Generator, not {type(generator).__name__}")
    trace_hooks.register_generator(generator)
    return generator._rng


def _real(name: str, dtype: DTypeLike, accepts: str = "f") -> NumpyDType:
    kind = default_dtype() if dtype is None else as_dtype(dtype)
    if kind.kind not in accepts:
        raise errors.no_kernel(name, kind, accepts)
    return kind


@op(arrays=False)
@with_creation_keywords
def rand(
    *size: ShapeLike,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform numbers in [0, 1); for complex dtypes, both parts are uniform."""
    kind = _real("rand", dtype, "fc")
    return _wrap_new(_floats("random", _sizes("rand", size), kind, generator, device), requires_grad)


def _floats(
    method: str, shape: tuple[int, ...], dtype: NumpyDType, generator: Generator | None, gpu: int | None = None
) -> AnyArray:
    """Draw with NumPy's ``random`` or ``standard_normal``, as real or complex numbers; on a GPU with CuPy's."""
    kind = np.float32 if dtype == np.float32 else np.float64
    scale = np.sqrt(0.5) if method == "standard_normal" else 1.0

    def draw(shape: tuple[int, ...]) -> NumpyArray:
        numbers = _source(method, generator, gpu)
        if dtype.kind == "c":
            re, im = numbers((2, *shape)) * scale
            return (re + 1j * im).astype(dtype)
        return scalar_to_array(numbers(shape, kind)).astype(dtype, copy=False)

    return _drawn(shape, draw)


def _source(method: str, generator: Generator | None, gpu: int | None) -> AnyFunction:
    """Return a method of NumPy's random generator, or of a GPU's."""
    if gpu is None:
        return getattr(_rng(generator), method)
    if generator is not None:
        raise RuntimeError(
            "Expected a 'cuda' device type for generator but found 'cpu': random numbers on a GPU come from the GPU's own "
            "generator, seeded by manual_seed (or cuda.manual_seed): omit generator=, or draw on the CPU and copy: .to('cuda')"
        )
    return functools.partial(gpus.draw_random, method, gpu)


@op(arrays=False)
@with_creation_keywords
def randn(
    *size: ShapeLike,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return standard normal numbers (complex ones have a total variance of 1)."""
    kind = _real("randn", dtype, "fc")
    return _wrap_new(_floats("standard_normal", _sizes("randn", size), kind, generator, device), requires_grad)


@op(arrays=False)
@with_creation_keywords
def randint(
    low: Any = 0,
    high: Any = None,
    size: ShapeLike | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return random integers from ``low`` (0) up to but excluding ``high``."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    kind = np.dtype(np.int64) if dtype is None else as_dtype(dtype)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")

    def draw(shape: tuple[int, ...]) -> NumpyArray:
        return scalar_to_array(_source("integers", generator, device)(low, high, shape)).astype(kind)

    return _wrap_new(_drawn(_sizes("randint", (size,)), draw), requires_grad)


@op(arrays=False)
@with_creation_keywords
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the integers below n in random order."""
    kind = np.dtype(np.int64) if dtype is None else as_dtype(dtype)
    (n,) = _sizes("randperm", (n,))

    def draw(shape: tuple[int, ...]) -> NumpyArray:
        if len(shape) == 1:
            return _rng(generator).permutation(n).astype(kind)
        return _rng(generator).permuted(np.broadcast_to(np.arange(n), shape), axis=-1).astype(kind)

    return _wrap_new(_drawn((n,), draw), requires_grad)


def _like(name: str, what: str, function: AnyFunction) -> AnyFunction:
    def like(input: Tensor, *bounds: int, dtype: DTypeLike = None, **options: object) -> Tensor:
        x = tensor_of(name, input)
        if type(x._raw) is Foreign and not x.is_cuda:
            raise errors.foreign_lacks(x._raw, f"random ({name}())")
        options.setdefault("device", x.device)
        return function(*bounds, size=tuple(x.shape), dtype=x.dtype if dtype is None else dtype, **options)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"Return {what} with another tensor's shape and dtype."
    return op(arrays=False)(like)


rand_like = _like("rand_like", "uniform numbers", rand)
randn_like = _like("randn_like", "standard normal numbers", randn)
randint_like = _like("randint_like", "random integers from ``low`` (0) up to but excluding ``high``,", randint)


def _wrap_sampled(numbers: AnyArray, *parameters: object) -> Tensor:
    """Wrap drawn numbers. They have no derivative by the parameters, which get gradients of 0, as in PyTorch."""
    out = wrap(numbers) if not isinstance(numbers, Tensor) else numbers
    out = placed(out, next((gpu_number(x) for x in parameters if isinstance(x, Tensor)), None))
    for x in parameters:
        if isinstance(x, Tensor) and x.requires_grad:
            out = ew.where(creation.zeros_like(out, dtype=np.bool_), x, out)
    return out


def _plain(x: object) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


@op(arrays=False)
@with_creation_keywords
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: ShapeLike | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return normal numbers with given mean and standard deviation (numbers with a size, or tensors).

    As in PyTorch, the gradient with respect to these is 0; ``mean + std * randn_like(mean)`` is differentiable.
    """
    mean, std = operand("normal", 0, mean), operand("normal", 1, std)
    like = mean if isinstance(mean, Tensor) or size is not None else tensor_of("normal", std)
    if std < 0 if isinstance(std, (int, float)) else predicate_holds(std, _has_negative):
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but found {std}")
    if size is not None:
        kind = _real("normal", dtype, "fc")
        noise = _floats("standard_normal", _sizes("normal", (size,)), kind, generator, device)
        return _wrap_new(np.astype(noise * std + mean, kind), requires_grad)
    kind = _real("normal", like.dtype, "fc")
    shape = np.broadcast_shapes(*(tuple(x.shape) for x in (mean, std) if isinstance(x, Tensor)))
    noise = wrap(_floats("standard_normal", shape, kind, generator, gpu_number(like)))
    return _wrap_sampled(noise * _plain(std) + _plain(mean), mean, std)


def _has_negative(x: NumpyArray) -> NumpyArray:
    return np.asarray(np.any(x < 0))


def _drawn_from(name: str, draw: AnyFunction, *parameters: Tensor) -> AnyArray:
    """Return ``draw(*arrays)``, which depends on parameters: one call for all examples of the enclosing vmaps."""
    raws = [x.detach()._raw for x in parameters]
    if trace_hooks.is_tracing() and {*map(type, raws)} <= {
        trace_hooks.current_recorder().level.interpreter,
        np.ndarray,
    }:
        return trace_hooks.record_draw(draw, *raws)
    found = [_examples(x) for x in parameters]
    if not STACK.levels:
        return draw(*[array for array, _ in found])
    levels = _different_levels()
    sizes = [level.size or 0 for level in levels]
    ndim = max([x.ndim for x in parameters])
    arrays = []
    for (array, own), x in zip(found, parameters, strict=True):
        if not set(own) <= set(levels):
            raise errors.same_random_numbers(name)
        leading = [size if level in own else 1 for level, size in zip(levels, sizes, strict=True)]
        array = array.reshape((*leading, *(1,) * (ndim - x.ndim), *x.shape))
        arrays.append(np.broadcast_to(array, (*sizes, *array.shape[len(sizes) :])))
    data = draw(*arrays)
    for level in levels:
        data = level.interpreter(data, level)
    return data


def _examples(x: Tensor) -> tuple[NumpyArray, list[Level]]:
    """Return a tensor's values for all examples of the enclosing vmaps, and the levels of its leading axes, outermost first."""
    data = x.detach()._raw
    levels: list[Any] = []
    while isinstance(data, Tensor) or (isinstance(data, ArrayLike) and data.wraps):
        if getattr(data, "shared", True) is False:
            levels.insert(0, data.level)  # type: ignore[union-attr]
        data = data._raw if isinstance(data, Tensor) else data.inside
    return wrap(data)._array(), levels


@op(method=True, out=True, arrays=False)
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Return 1 with the probability given by each element (or with probability ``p`` for all), else 0."""
    if p is not None:
        return creation.empty_like(input).bernoulli_(p, generator=generator)
    x = tensor_of("bernoulli", input, "f").detach()
    if STACK.levels:
        u = wrap(_drawn(tuple(x.shape), lambda shape: _rng(generator).random(shape).astype(x.dtype)))
        return _wrap_sampled((u < x).to(x.dtype), input)
    each = x._array()
    if not ((each >= 0) & (each <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: the elements are probabilities")
    return _wrap_sampled((_rng(generator).random(each.shape) < each).astype(each.dtype), input)


@op(arrays=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Poisson numbers with the rate given by each element."""
    rates = tensor_of("poisson", input, "f")

    def draw(rate: AnyArray) -> NumpyArray:
        if not (rate >= 0).all():
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        return np.asarray(_rng(generator).poisson(rate), rate.dtype)

    return _wrap_sampled(_drawn_from("poisson", draw, rates), input)


@op(arrays=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return how many of ``count`` trials succeed, each with probability ``prob``."""

    def draw(n: NumpyArray, p: NumpyArray) -> NumpyArray:
        if not ((p >= 0) & (p <= 1)).all() or (n < 0).any():
            raise RuntimeError("binomial expects count >= 0 and prob between 0 and 1")
        return np.asarray(_rng(generator).binomial(n.astype(np.int64), p), n.dtype)

    trials, share = tensor_of("binomial", count, "f"), tensor_of("binomial", prob, "f")
    return _wrap_sampled(_drawn_from("binomial", draw, trials, share), count, prob)


@op(method=True, arrays=False)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Return indices drawn with probabilities proportional to each row's weights."""
    input = tensor_of("multinomial", input)

    def draw(weights: AnyArray) -> NumpyArray:
        if (weights < 0).any() or not (weights.sum(-1) > 0).all():
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0, or sums to 0")
        if not replacement and (np.count_nonzero(weights, axis=-1) < num_samples).any():
            raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
        rng = _rng(generator)
        picks = np.empty((*weights.shape[:-1], num_samples), np.int64)
        for index in np.ndindex(weights.shape[:-1]):
            w = weights[index].astype(float)
            picks[index] = rng.choice(len(w), num_samples, replace=replacement, p=w / w.sum())
        return picks

    return placed(wrap(_drawn_from("multinomial", draw, input)), gpu_number(input))


#: keywords of PyTorch -> parameter names here, because ``from`` is reserved in Python
_BOUNDS = {"from": "low", "to": "high"}


def _filler(name: str, draw: AnyFunction, accepts: str = "fc") -> AnyFunction:
    def fill(self: Tensor, *args: object, generator: Generator | None = None, **named: object) -> Tensor:
        if self.dtype.kind not in accepts:
            raise errors.no_kernel(name, self.dtype, accepts)
        rng, options = _rng(generator), {_BOUNDS.get(key, key): value for key, value in named.items()}

        def drawn(shape: tuple[int, ...]) -> NumpyArray:
            try:
                if self.dtype.kind == "c":
                    re, im = draw(rng, (2, *shape), *args, **options) * (np.sqrt(0.5) if name == "normal_" else 1)
                    return (re + 1j * im).astype(self.dtype)
                return np.asarray(draw(rng, shape, *args, **options)).astype(self.dtype)
            except ValueError as error:  # from NumPy, for parameters out of range
                raise RuntimeError(f"{name}: {error}") from None

        return self.copy_(wrap(_drawn(tuple(self.shape), drawn)))

    fill.__name__ = name
    fill.__doc__ = f"Fill the tensor in place with random numbers ({name[:-1]})."
    return fill


def _between(rng: np.random.Generator, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> NumpyArray:
    if low > high:
        raise ValueError(f"expects to return a [from, to) range, but found from={low} > to={high}")
    return low + (high - low) * rng.random(shape)


def _cauchy(rng: np.random.Generator, shape: tuple[int, ...], median: float = 0.0, sigma: float = 1.0) -> NumpyArray:
    if sigma <= 0:
        raise ValueError(f"expects sigma > 0.0, but found sigma={sigma}")
    return median + sigma * rng.standard_cauchy(shape)


def _trials(rng: np.random.Generator, shape: tuple[int, ...], p: float = 0.5) -> NumpyArray:
    if not 0 <= p <= 1:
        raise ValueError(f"expects p to be in [0, 1], but got p={p}")
    return rng.random(shape) < p


_bernoulli_number = _filler("bernoulli_", _trials, "biufc")


def bernoulli_(self: Tensor, p: TensorLike = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with 1, with probability ``p`` (a number, or a tensor with one for each element), else 0."""
    if not isinstance(p, Tensor):
        return _bernoulli_number(self, p, generator=generator)
    return self.copy_(bernoulli(p.expand(self.shape), generator=generator))


def random_(self: Tensor, *bounds: int, generator: Generator | None = None, **named: object) -> Tensor:
    """Fill the tensor in place with integers from ``from`` (0) up to but excluding ``to`` (by default the dtype's exact range)."""
    low, high = (0, *bounds)[-2:] if bounds else (named.get("from", 0), named.get("to"))
    if high is None:
        if self.dtype.kind == "f":
            high = 2 ** (np.finfo(self.dtype).nmant + 1) + 1
        else:
            high = 2 if self.dtype.kind == "b" else int(np.iinfo(self.dtype).max)
    return self.copy_(randint(low, high, tuple(self.shape), generator=generator, dtype=self.dtype))


@contextlib.contextmanager
def fork_rng(devices: object = None, enabled: bool = True) -> Iterator[None]:
    """Restore the state of the default generator at the end of the block."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


attach_methods(
    random_=random_,
    bernoulli_=bernoulli_,
    uniform_=_filler("uniform_", _between),
    normal_=_filler("normal_", lambda rng, shape, mean=0.0, std=1.0: rng.normal(mean, std, shape)),
    exponential_=_filler("exponential_", lambda rng, shape, lambd=1.0: rng.exponential(1 / lambd, shape), "f"),
    cauchy_=_filler("cauchy_", _cauchy, "f"),
    geometric_=_filler("geometric_", lambda rng, shape, p: rng.geometric(p, shape), "biuf"),
    log_normal_=_filler("log_normal_", lambda rng, shape, mean=1.0, std=2.0: rng.lognormal(mean, std, shape), "f"),
)
