"""L-BFGS, which estimates the curvature from recent changes of the gradient.

The algorithm is PyTorch's (and minFunc's): a two-loop recursion for the direction (Nocedal and Wright, Algorithm 7.4).
Steps have a fixed length or satisfy the strong Wolfe conditions (Algorithms 3.5 and 3.6, with cubic interpolation).
Scalars are tensors of the parameters' dtype where they are in PyTorch, for the same rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from chainrule._src.api.grad_mode import enable_grad, no_grad
from chainrule._src.arrays.types import TensorLike
from chainrule._src.ops import creation, joining
from chainrule._src.tape.tensor import Tensor
from chainrule.optim.optimizer import Closure, Optimizer, as_real, check_options


class _Trial(NamedTuple):
    """A trial step of length ``t``: the loss at its end, its gradient, and its slope along the direction."""

    t: Any
    loss: float
    grad: Tensor
    slope: Any


class LBFGS(Optimizer):
    """L-BFGS. ``step`` runs up to ``max_iter`` iterations with a closure that recomputes the loss and its gradients.

    Args:
        params: the parameters, as one group.
        lr: the step length, or the initial one of the line search.
        max_iter, max_eval: the limits for iterations and loss evaluations in a step (default 1.25 · max_iter).
        tolerance_grad, tolerance_change: stop at a smaller gradient, or a smaller change of parameters and loss.
        history_size: the number of gradient changes to store.
        line_search_fn: "strong_wolfe", or None for steps of fixed length.

    >>> import chainrule as cr
    >>> w = cr.tensor([-1.2, 1.0], dtype=cr.float64, requires_grad=True)
    >>> optimizer = cr.optim.LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> w
    tensor([1.0000, 1.0000], dtype=torch.float64, requires_grad=True)
    """

    def __init__(
        self, params: Iterable[object], lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_options(lr, 0)
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        options |= {"tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change}
        super().__init__(params, {**options, "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Closure | None = None) -> Any:
        """Run up to ``max_iter`` iterations; return the first result of the closure."""
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that recomputes the loss and its gradients")
        with no_grad():
            return self._iterate(enable_grad()(closure))

    def _iterate(self, compute: Closure) -> Any:
        group, state = self.param_groups[0], self.state[self.param_groups[0]["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = compute()
        loss, grad, evaluations = _as_float(first), self._flat_grad(), 1
        state["func_evals"] += 1
        converged = grad.abs().max() <= group["tolerance_grad"]
        for iteration in range(1, group["max_iter"] + 1):
            if converged:
                break
            state["n_iter"] += 1
            direction = self._direction(state, grad)
            state["d"], state["prev_flat_grad"], state["prev_loss"] = direction, grad.clone(), loss
            t = group["lr"] if state["n_iter"] > 1 else min(1.0, 1.0 / grad.abs().sum()) * group["lr"]
            state["t"] = t
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            before = evaluations
            if group["line_search_fn"] is not None:
                start = _Trial(0, loss, grad, slope)
                search = _LineSearch(
                    self._line_function(compute, direction), start, direction, group["tolerance_change"]
                )
                found = search.run(t, group["max_eval"] - evaluations)
                t, loss, grad = found.t, found.loss, found.grad
                state["t"] = t
                self._add_step(t, direction)
                evaluations += search.evaluations
            else:
                self._add_step(t, direction)
                if iteration < group["max_iter"]:
                    loss, grad = _as_float(compute()), self._flat_grad()
                    evaluations += 1
            state["func_evals"] += evaluations - before
            converged = grad.abs().max() <= group["tolerance_grad"]
            small = (direction * t).abs().max() <= group["tolerance_change"]
            if evaluations >= group["max_eval"] or small or abs(loss - state["prev_loss"]) < group["tolerance_change"]:
                break
        return first

    def _direction(self, state: dict[str, Any], grad: Tensor) -> Tensor:
        """Store the last step, then return minus the estimated inverse Hessian times the gradient."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -grad
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature > 1e-10:
            if len(changes) == self.param_groups[0]["history_size"]:
                for oldest in (changes, steps, inverses):
                    oldest.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        q, alphas = -grad, []
        for y, s, inverse in zip(reversed(changes), reversed(steps), reversed(inverses)):
            alphas.append(s.dot(q) * inverse)
            q.add_(y, alpha=-alphas[-1])
        r: Tensor = q * state["H_diag"]
        for y, s, inverse, alpha_i in zip(changes, steps, inverses, reversed(alphas)):
            r.add_(s, alpha=alpha_i - y.dot(r) * inverse)
        return r

    def _line_function(self, compute: Closure, direction: Tensor) -> Callable[[Any], _Trial]:
        """Return the loss as a function of the step length, starting at the current parameters."""
        params = self.param_groups[0]["params"]
        start = [p.clone() for p in params]

        def trial(t: TensorLike) -> _Trial:
            self._add_step(t, direction)
            loss, grad = _as_float(compute()), self._flat_grad()
            for p, at_start in zip(params, start):
                p.copy_(at_start)
            return _Trial(t, loss, grad, grad.dot(direction))

        return trial

    def _flat_grad(self) -> Tensor:
        """Return all gradients as one real vector."""
        params = self.param_groups[0]["params"]
        grads = [creation.zeros_like(p) if p.grad is None else p.grad for p in params]
        return joining.cat([as_real(grad).reshape(-1) for grad in grads])

    def _add_step(self, t: TensorLike, direction: Tensor) -> None:
        """Add ``t`` times the direction to the parameters."""
        at = 0
        for p in self.param_groups[0]["params"]:
            real = as_real(p)
            real.add_(direction[at : at + real.numel()].view_as(real), alpha=t)
            at += real.numel()


def _as_float(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


class _LineSearch:
    """A search for a step with the strong Wolfe conditions: sufficient decrease (c1) and curvature (c2)."""

    c1, c2 = 1e-4, 0.9

    def __init__(self, trial: Callable[[Any], _Trial], start: _Trial, direction: Tensor, tolerance: float) -> None:
        self.trial, self.start, self.tolerance = trial, start, tolerance
        self.direction_max = direction.abs().max()
        self.evaluations = 0

    def run(self, t: Any, max_evaluations: int) -> _Trial:
        """Return a step found with about ``max_evaluations`` trials, or the best trial if none satisfies the conditions."""
        new, previous = self._try(t), self.start
        while self.evaluations <= max_evaluations:
            if self._violates_armijo(new) or (self.evaluations > 2 and new.loss >= previous.loss):
                return self._zoom(previous, new, max_evaluations)
            if self._satisfies_curvature(new):
                return new
            if new.slope >= 0:
                return self._zoom(previous, new, max_evaluations)
            bounds = new.t + 0.01 * (new.t - previous.t), new.t * 10
            previous, new = new, self._try(_cubic_minimum(previous, new, bounds))
        return self.start if self.start.loss <= new.loss else new

    def _zoom(self, first: _Trial, second: _Trial, max_evaluations: int) -> _Trial:
        """Shrink the interval between two steps until a step inside satisfies the conditions."""
        ends = [first, second]
        low = 0 if first.loss <= second.loss else 1
        stuck = False
        while (
            self.evaluations <= max_evaluations and not abs(ends[1].t - ends[0].t) * self.direction_max < self.tolerance
        ):
            left, right = sorted((ends[0].t, ends[1].t), key=float)
            t = _cubic_minimum(ends[0], ends[1], (left, right))
            margin = 0.1 * (right - left)
            near = min(right - t, t - left) < margin
            if near and (stuck or t >= right or t <= left):
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                near = False
            stuck = near
            new = self._try(t)
            high = 1 - low
            if self._violates_armijo(new) or new.loss >= ends[low].loss:
                ends[high] = new
                low = 0 if ends[0].loss <= ends[1].loss else 1
                continue
            if self._satisfies_curvature(new):
                return new
            if new.slope * (ends[high].t - ends[low].t) >= 0:
                ends[high] = ends[low]
            ends[low] = new
        return ends[low]

    def _try(self, t: TensorLike) -> _Trial:
        self.evaluations += 1
        return self.trial(t)

    def _violates_armijo(self, new: _Trial) -> bool:
        return bool(new.loss > self.start.loss + self.c1 * new.t * self.start.slope)

    def _satisfies_curvature(self, new: _Trial) -> bool:
        return bool(abs(new.slope) <= -self.c2 * self.start.slope)


def _cubic_minimum(a: _Trial, b: _Trial, bounds: tuple[Any, Any]) -> Any:
    """Return the minimizer, within bounds, of the cubic through two trials (Nocedal and Wright, equation 3.59)."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (bounds[0] + bounds[1]) / 2
    d2 = square.sqrt()
    if a.t <= b.t:
        least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        least = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(least, bounds[0]), bounds[1])
