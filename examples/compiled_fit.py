"""Classify handwritten threes and eights, with a bootstrap of 100 fits by SciPy, compiled and not compiled."""

import time

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_digits

import chainrule as cr

FITS, PENALTY = 100, 1e-2

# 357 pictures of 8 × 8 pixels, averaged to 4 × 4, with a column of ones for the bias.
pictures, labels = load_digits(return_X_y=True)
chosen = (labels == 3) | (labels == 8)
pixels = pictures[chosen].reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16) / 16
features = np.column_stack([pixels, np.ones(len(pixels))])
signs = np.where(labels[chosen] == 8, 1.0, -1.0)


def loss(p, counts):
    """Return the penalized mean of −log p(correct digit) over a sample that contains each picture ``counts`` times."""
    margins = signs * (features @ p)
    return np.mean(counts * np.logaddexp(0, -margins)) + PENALTY * np.sum(p[:-1] ** 2)


rng = np.random.default_rng(0)
samples = rng.multinomial(len(pixels), np.full(len(pixels), 1 / len(pixels)), size=FITS).astype(float)


def fit_all(function):
    """Return the weights of all fits, the number of function calls, and the elapsed seconds."""
    begin = time.perf_counter()
    found = [minimize(function, np.zeros(17), args=(counts,), jac=True, method="L-BFGS-B") for counts in samples]
    seconds = time.perf_counter() - begin
    assert all(each.success for each in found)
    return np.array([each.x for each in found]), sum(each.nfev for each in found), seconds


gradient = cr.value_and_grad(loss)
compiled = cr.compile(gradient)
weights, calls, seconds = fit_all(gradient)
fast_weights, fast_calls, fast_seconds = fit_all(compiled)

print(f"not compiled: {FITS} fits, {calls} calls, {seconds:.2f} s")
print(
    f"compiled: {FITS} fits, {fast_calls} calls, {fast_seconds:.2f} s, one recording: {len(compiled.recordings) == 1}"
)
same = np.array_equal(weights, fast_weights)
print(f"the same weights, to the last bit: {same}")

low, high = np.quantile(weights, [0.025, 0.975], axis=0)
print("pixels that indicate an eight (+) or a three (-) in 95 of 100 fits, and the others (.):")
for row in np.where(low > 0, "+", np.where(high < 0, "-", "."))[:-1].reshape(4, 4):
    print("   ", *row)
right = np.mean(np.sign(features @ weights.mean(0)) == signs)
print(f"the mean of the fits classifies {right:.1%} of the pictures correctly")
assert same and right > 0.95
