"""Swing up a pole on a cart with the least force: optimal control by direct collocation, solved by Ipopt.

States and force at all times are the unknowns. The equations of motion are constraints between neighbouring times, so
the Jacobian and the Hessian of the Lagrangian are sparse; chainrule finds and computes them.

    python examples/cart_pole.py [intervals]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import chainrule as cr

CART, POLE, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81  # kg, kg, m, m/s²
DURATION, DISTANCE, TRACK, FORCE = 2.0, 1.0, 1.2, 10.0  # s, m, m, N: the last two are limits


def accelerations(angle: Any, spin: Any, force: Any, xp: Any = np) -> tuple[Any, Any]:
    """Return the accelerations of cart and angle, from the equations of motion. The pole hangs down at angle 0."""
    s, c = xp.sin(angle), xp.cos(angle)
    mass = CART + POLE * s**2
    push = force + POLE * s * LENGTH * spin**2
    return (push + POLE * GRAVITY * s * c) / mass, -(push * c + (CART + POLE) * GRAVITY * s) / (mass * LENGTH)


def problem(intervals: int) -> tuple[Any, dict[str, Any], dict[str, Any], list[Any]]:
    """Return the cost, the start, the bounds and the constraints."""
    step = DURATION / intervals

    def integral(w: Any) -> Any:
        """Integrate over each interval by the trapezoidal rule."""
        return step / 2 * (w[1:] + w[:-1])

    def cost(z: Any) -> Any:
        return np.sum(integral(z["force"] ** 2))

    def motion(z: Any) -> Any:
        pushed, turned = accelerations(z["angle"], z["spin"], z["force"])
        rates = {"position": z["speed"], "angle": z["spin"], "speed": pushed, "spin": turned}
        return [np.diff(z[name]) - integral(rate) for name, rate in rates.items()]

    def ends(z: Any) -> Any:
        first, last = [[z[name][k] for name in ("position", "angle", "speed", "spin")] for k in (0, -1)]
        return np.stack([*first, last[0] - DISTANCE, last[1] - np.pi, *last[2:]])

    t = np.linspace(0, 1, intervals + 1)
    start = {"position": DISTANCE * t, "angle": np.pi * t, "speed": 0 * t, "spin": 0 * t, "force": 0 * t}
    bounds = {"position": (-TRACK, TRACK), "angle": None, "speed": None, "spin": None, "force": (-FORCE, FORCE)}
    return cost, start, bounds, [motion, ends]


def by_casadi(intervals: int) -> float:
    """Solve the same problem with CasADi's symbols, and return the cost."""
    import casadi as ca

    n, step = intervals + 1, DURATION / intervals
    z = ca.MX.sym("z", 5 * n)
    position, angle, speed, spin, force = [z[k * n : (k + 1) * n] for k in range(5)]
    pushed, turned = accelerations(angle, spin, force, ca)
    states, rates = (position, angle, speed, spin), (speed, spin, pushed, turned)
    motion = [x[1:] - x[:-1] - step / 2 * (rate[1:] + rate[:-1]) for x, rate in zip(states, rates, strict=True)]
    ends = [x[0] for x in states] + [x[-1] for x in states]
    cost = step / 2 * (ca.sumsqr(force[1:]) + ca.sumsqr(force[:-1]))
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}
    solver = ca.nlpsol("solver", "ipopt", {"x": z, "f": cost, "g": ca.vertcat(*motion, *ends)}, quiet)
    _, start, _, _ = problem(intervals)
    limit = np.concatenate([np.full(n, limit) for limit in (TRACK, np.inf, np.inf, np.inf, FORCE)])
    goal = np.concatenate([np.zeros(4 * intervals + 4), [DISTANCE, np.pi, 0, 0]])
    found = solver(x0=np.concatenate(list(start.values())), lbx=-limit, ubx=limit, lbg=goal, ubg=goal)
    return float(found["f"])


def solve(intervals: int = 100, method: str = "ipopt") -> SimpleNamespace:
    cost, start, bounds, constraints = problem(intervals)
    found = cr.scipy.minimize(
        cost, start, method=method, bounds=bounds, constraints=constraints, compile=True, options={"maxiter": 1000}
    )
    motion = cr.jacobian(constraints[0], found.x, layout="structured", hstack=True)
    print(
        f"{5 * (intervals + 1)} unknowns, {motion.shape[0] + 8} equations; {motion.nnz} of {motion.shape[0] * motion.shape[1]} derivatives"
    )
    print(f"{found.nit} iterations: {found.message}")
    print(f"integral of the squared force: {found.fun:.2f} N² s, at most {np.max(np.abs(found.x['force'])):.2f} N")
    return SimpleNamespace(result=found, z=found.x, t=np.linspace(0, DURATION, intervals + 1), motion=motion)


def draw(found: SimpleNamespace) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained", width_ratios=(5, 3, 3))
    z, t = found.z, found.t
    tip = z["position"] + LENGTH * np.sin(z["angle"]), -LENGTH * np.cos(z["angle"])
    axes[0].plot(*tip, lw=1, color="C1", alpha=0.6)
    for k in np.linspace(0, len(t) - 1, 13).round().astype(int):
        shade = 0.25 + 0.75 * k / (len(t) - 1)
        axes[0].plot([z["position"][k], tip[0][k]], [0, tip[1][k]], color="C0", alpha=shade, lw=1.5)
        axes[0].plot(tip[0][k], tip[1][k], "o", ms=6, color="C1", alpha=shade)
        axes[0].plot(z["position"][k], 0, "s", ms=9, color="C0", alpha=shade)
    axes[0].axhline(0, color="grey", lw=0.5, zorder=0)
    axes[0].set(title="Cart and pole, at 13 times (fainter is earlier)", aspect="equal", xlabel="m")
    axes[1].plot(t, z["position"], label="position, m")
    axes[1].plot(t, z["angle"], label="angle, rad")
    axes[1].set(title="State", xlabel="s")
    axes[1].legend(loc="upper left")
    axes[2].plot(t, z["force"])
    for limit in (-FORCE, FORCE):
        axes[2].axhline(limit, color="grey", lw=1, ls="--")
    axes[2].set(title="Force, N, and its limits", xlabel="s")
    return figure


def alternatives() -> dict[str, Callable[[], Any]]:
    """Return functions that compute the cost with 100 intervals, which includes the derivation of the derivatives."""
    cost, start, bounds, constraints = problem(100)
    given: dict[str, Any] = {"method": "ipopt", "bounds": bounds, "constraints": constraints}
    return {
        "chainrule, compile=True": lambda: cr.scipy.minimize(cost, start, compile=True, **given).fun,
        "chainrule": lambda: cr.scipy.minimize(cost, start, **given).fun,
        "CasADi's symbols": lambda: by_casadi(100),
    }


if __name__ == "__main__":
    draw(solve(int(sys.argv[1]) if len(sys.argv) > 1 else 100)).savefig("cart_pole.png", dpi=150)
