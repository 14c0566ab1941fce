"""Fit a damped oscillation with SciPy in float64, and compare the exact gradient with finite differences."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import chainrule as cr

NAMES = "amplitude", "damping", "frequency", "phase", "offset"
TRUTH = np.array([2.0, 0.35, 2.5, 0.6, 0.5])
START = np.array([1.0, 0.1, 2.2, 0.0, 0.0])
NOISE = 0.15

rng = np.random.default_rng(0)
t = np.linspace(0, 8, 200)


def model(p):
    """Return the model's prediction. It is written for NumPy arrays; called on tensors it is differentiated."""
    return p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t + p[3]) + p[4]


data = model(TRUTH) + NOISE * rng.normal(size=t.size)


def loss(p):
    return np.mean((model(p) - data) ** 2)


def fit(function, **options):
    """Return the result, and the loss at every evaluation, including those for finite differences."""
    history = []

    def recorded(p):
        result = function(p)
        history.append(result[0] if isinstance(result, tuple) else result)
        return result

    return minimize(recorded, START, method="L-BFGS-B", **options), history


exact, exact_history = fit(cr.func.value_and_grad(loss), jac=True)
_, differences_history = fit(loss)
assert exact.success, exact.message

print(f"{'':>10} {'truth':>8} {'fit':>8}")
for name, true, found in zip(NAMES, TRUTH, exact.x, strict=True):
    print(f"{name:>10} {true:8.4f} {found:8.4f}")
print(f"loss {exact.fun:.5f} (the noise alone is {NOISE**2:.5f})")
print(f"evaluations: {len(exact_history)} with the gradient, {len(differences_history)} with finite differences")
assert np.allclose(exact.x, TRUTH, atol=0.1)

plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(2, 3))

left.plot(np.minimum.accumulate(differences_history), color="#b0b0b0", lw=2, label="finite differences")
left.plot(np.minimum.accumulate(exact_history), color="#c44e52", lw=2, label="value_and_grad")
left.axhline(NOISE**2, color="black", lw=0.8, ls=":")
left.text(len(differences_history), NOISE**2 * 1.04, "noise", ha="right", va="bottom")
left.set(title="Best loss so far", xlabel="evaluations of the loss", ylabel="mean squared error", yscale="log")
left.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], labels=["0.02", "0.05", "0.1", "0.2", "0.5"])
left.set_yticks([], minor=True)
left.legend(frameon=False)

right.plot(t, data, ".", color="#b0b0b0", ms=5, label="data")
right.plot(t, model(START), color="#4c72b0", lw=1, ls="--", label="start")
right.plot(t, model(exact.x), color="#c44e52", lw=2, label="fit")
right.set(title="A damped oscillation", xlabel="t", ylabel="y")
right.legend(frameon=False)
figure.savefig("demo.png", dpi=150)
print("saved demo.png")
