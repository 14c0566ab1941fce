"""Random tensors, from one generator that ``manual_seed`` resets.

Inside ``vmap`` the numbers are drawn anew for each example or once for all, as its ``randomness`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import errors
from chainrule.core.dtypes import as_dtype, default_dtype
from chainrule.core.levels import STACK, Level
from chainrule.core.tensor import Tensor, attach, wrap
from chainrule.interpreters.batched import Batched
from chainrule.ops.arguments import creates_out, tensor_of
from chainrule.ops.creation import _made, _sizes


class Generator:
    """A source of random numbers with its own state. Until it is seeded, it starts from the system's entropy."""

    def __init__(self, device: Any = "cpu") -> None:
        self._seed: int | None = None
        self._state: np.random.Generator | None = None

    @property
    def _rng(self) -> np.random.Generator:
        if self._state is None:  # made when first used: numpy.random takes long to import
            self.seed()
        assert self._state is not None
        return self._state

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from a seed."""
        if not isinstance(seed, (int, np.integer)):
            raise TypeError(f"manual_seed(): argument 'seed' must be int, not {type(seed).__name__}")
        self._seed = int(seed)
        self._state = np.random.Generator(np.random.PCG64(self._seed % 2**64))
        return self

    def initial_seed(self) -> int:
        """The seed that the numbers started from."""
        if self._seed is None:
            self.seed()
        return self._seed or 0

    def seed(self) -> int:
        """Start anew from the system's entropy; returns the seed."""
        seed = int(np.random.SeedSequence().entropy) % 2**63  # type: ignore[arg-type]
        self.manual_seed(seed)
        return seed

    def get_state(self) -> Any:
        """The state, for :meth:`set_state`."""
        return self._rng.bit_generator.state

    def set_state(self, state: Any) -> Generator:
        """Go back to a state."""
        self._rng.bit_generator.state = state
        return self


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Start the random numbers anew, from a seed.

    >>> import chainrule as cr
    >>> _ = cr.manual_seed(0)
    >>> a = cr.rand(2)
    >>> _ = cr.manual_seed(0)
    >>> bool((a == cr.rand(2)).all())
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the random numbers anew, from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Go back to a state of the default generator."""
    default_generator.set_state(state)


def _mapped() -> list[Level]:
    """The vmaps around, outermost first, that want different numbers for each example."""
    levels = [level for level in STACK.levels if level.size is not None]
    if any(level.randomness == "error" for level in levels):
        raise errors.random_in_vmap()
    return [level for level in levels if level.randomness == "different"]


def _drawn(shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """``draw(shape)``; inside vmap with an axis for each level that wants its own numbers."""
    if not STACK.levels:
        return draw(shape)
    levels = _mapped()
    data = draw((*[level.size for level in levels if level.size is not None], *shape))
    for level in levels:
        data = Batched(data, level)
    return data


def _rng(generator: Generator | None) -> np.random.Generator:
    if generator is None:
        return default_generator._rng
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be Generator, not {type(generator).__name__}")
    return generator._rng


def _real(name: str, dtype: Any, accepts: str = "f") -> Any:
    kind = default_dtype() if dtype is None else as_dtype(dtype)
    if kind.kind not in accepts:
        raise errors.no_kernel(name, kind, accepts)
    return kind


@creates_out
def rand(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Uniform numbers in [0, 1)."""
    kind = _real("rand", dtype)
    return _made(_drawn(_sizes("rand", size), lambda shape: _uniform(shape, kind, generator)), requires_grad)


def _uniform(shape: tuple[int, ...], dtype: Any, generator: Generator | None) -> Any:
    kind = np.float32 if dtype == np.float32 else np.float64
    return np.asarray(_rng(generator).random(shape, kind)).astype(dtype, copy=False)


@creates_out
def randn(
    *size: Any, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Standard normal numbers (complex ones have variance 1 in all)."""
    kind = _real("randn", dtype, "fc")
    shape = _sizes("randn", size)
    return _made(_drawn(shape, lambda shape: _normal(shape, kind, generator)), requires_grad)


def _normal(shape: tuple[int, ...], dtype: Any, generator: Generator | None) -> Any:
    if dtype.kind == "c":
        parts = _rng(generator).standard_normal((2, *shape)) * np.sqrt(0.5)
        return (parts[0] + 1j * parts[1]).astype(dtype)
    kind = np.float32 if dtype == np.float32 else np.float64
    return np.asarray(_rng(generator).standard_normal(shape, kind)).astype(dtype, copy=False)


@creates_out
def randint(
    low: int,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers from ``low`` (0) up to and without ``high``."""
    if size is None:
        low, high, size = 0, low, high
    kind = np.dtype(np.int64) if dtype is None else as_dtype(dtype)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")

    def draw(shape: tuple[int, ...]) -> Any:
        return np.asarray(_rng(generator).integers(low, high, shape)).astype(kind)

    return _made(_drawn(_sizes("randint", (size,)), draw), requires_grad)


@creates_out
def randperm(
    n: int, *, generator: Generator | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """The integers below n in random order."""
    kind = np.dtype(np.int64) if dtype is None else as_dtype(dtype)
    (n,) = _sizes("randperm", (n,))

    def draw(shape: tuple[int, ...]) -> Any:
        if len(shape) == 1:
            return _rng(generator).permutation(n).astype(kind)
        return _rng(generator).permuted(np.broadcast_to(np.arange(n), shape), axis=-1).astype(kind)

    return _made(_drawn((n,), draw), requires_grad)


def rand_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform numbers of another tensor's shape and dtype."""
    input = tensor_of("rand_like", input)
    return rand(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)


def randn_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Standard normal numbers of another tensor's shape and dtype."""
    input = tensor_of("randn_like", input)
    return randn(tuple(input.shape), dtype=dtype or input.dtype, requires_grad=requires_grad)


def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, dtype: Any = None
) -> Tensor:
    """Normal numbers of that mean and standard deviation (numbers with a size, or tensors)."""
    if isinstance(std, (int, float)) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if size is not None:
        kind = _real("normal", dtype)
        noise = _drawn(_sizes("normal", (size,)), lambda shape: _normal(shape, kind, generator))
        return wrap(np.astype(noise * std + mean, kind))
    like = mean if isinstance(mean, Tensor) else tensor_of("normal", std)
    noise = wrap(_drawn(tuple(like.shape), lambda shape: _normal(shape, like.dtype, generator)))
    return noise * std + mean


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element gives, else 0."""
    x = tensor_of("bernoulli", input, "f").detach()
    if STACK.levels:
        u = wrap(_drawn(tuple(x.shape), lambda shape: _rng(generator).random(shape).astype(x.dtype)))
        return (u < x).to(x.dtype)  # type: ignore[no-any-return, operator]
    p = x._array()
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: the elements are probabilities")
    return wrap((_rng(generator).random(p.shape) < p).astype(p.dtype))


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with probabilities in proportion to each row's weights."""
    input = tensor_of("multinomial", input)
    if STACK.levels:
        return _multinomial_inside(input.detach(), num_samples, replacement, generator)
    weights = np.atleast_2d(input.detach()._array()).astype(float)
    if (weights < 0).any() or not (weights.sum(-1) > 0).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0, or sums to 0")
    if not replacement and (np.count_nonzero(weights, axis=-1) < num_samples).any():
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rng = _rng(generator)
    rows = [rng.choice(len(w), num_samples, replace=replacement, p=w / w.sum()) for w in weights]
    picks = np.stack(rows).astype(np.int64)
    return wrap(picks[0] if input.ndim == 1 else picks)


def _multinomial_inside(w: Any, n: int, replacement: bool, generator: Generator | None) -> Tensor:
    """The same distribution without a loop: thresholds in the cumulative weights, or the largest of exponential races."""
    rows, many = tuple(w.shape[:-1]), w.shape[-1]
    if replacement:
        u = wrap(_drawn((*rows, n), lambda shape: _rng(generator).random(shape)))
        cumulative = w.double().cumsum(-1)
        reached = (u * cumulative[..., -1:])[..., :, None] >= cumulative[..., None, :]
        return reached.sum(-1).clamp(max=many - 1)  # type: ignore[no-any-return]
    wait = wrap(_drawn((*rows, many), lambda shape: _rng(generator).standard_exponential(shape)))
    return (w.double() / wait).topk(n, -1).indices  # type: ignore[no-any-return]


def _filler(name: str, draw: Any) -> Any:
    def fill(self: Tensor, *args: Any, generator: Generator | None = None) -> Tensor:
        numbers = _drawn(
            tuple(self.shape), lambda shape: np.asarray(draw(_rng(generator), shape, *args)).astype(self.dtype)
        )
        return self.copy_(wrap(numbers))

    fill.__name__ = name
    fill.__doc__ = f"Fill the tensor in place with random numbers ({name[:-1]})."
    return fill


uniform_ = _filler("uniform_", lambda rng, shape, a=0.0, b=1.0: rng.uniform(a, b, shape))
normal_ = _filler("normal_", lambda rng, shape, mean=0.0, std=1.0: rng.normal(mean, std, shape))
exponential_ = _filler("exponential_", lambda rng, shape, lambd=1.0: rng.exponential(1 / lambd, shape))
_bernoulli_number = _filler("bernoulli_", lambda rng, shape, p=0.5: rng.random(shape) < p)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with 1, with probability ``p`` (a number, or a tensor of one for each element), else 0."""
    if not isinstance(p, Tensor):
        return _bernoulli_number(self, p, generator=generator)  # type: ignore[no-any-return]
    return self.copy_(bernoulli(p.expand(self.shape), generator=generator))


random_ = _filler("random_", lambda rng, shape, low=0, high=2**24: rng.integers(low, high, shape))
attach(uniform_=uniform_, normal_=normal_, exponential_=exponential_, bernoulli_=bernoulli_, random_=random_)
