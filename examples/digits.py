"""Train a small network to classify handwritten digits, with plain tensors, backward(), and Adam in three lines."""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import trange

import chainrule as cr

EPOCHS, BATCH, RATE, GOAL = 60, 64, 3e-3, 0.97

# 1,797 pictures of 8 × 8 pixels; a quarter of them is the test set.
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
parts = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
train_x, test_x, train_y, test_y = map(cr.from_numpy, parts)

cr.manual_seed(0)
w1, b1 = cr.randn(64, 128) / 64**0.5, cr.zeros(128)
w2, b2 = cr.randn(128, 10) / 128**0.5, cr.zeros(10)
parameters = [p.requires_grad_() for p in (w1, b1, w2, b2)]
first, second = ([cr.zeros_like(p) for p in parameters] for _ in range(2))  # Adam's moments


def scores(x):
    return cr.relu(x @ w1 + b1) @ w2 + b2


def loss(x, y):
    """Return the mean of −log p(correct digit)."""
    return -cr.log_softmax(scores(x), dim=1).gather(1, y[:, None]).mean()


def accuracy(x, y):
    with cr.no_grad():
        return (scores(x).argmax(1) == y).float().mean().item()


def adam(step, rate):
    with cr.no_grad():
        for p, m, v in zip(parameters, first, second, strict=True):
            m += 0.1 * (p.grad - m)
            v += 0.001 * (p.grad**2 - v)
            p -= rate * (m / (1 - 0.9**step)) / (cr.sqrt(v / (1 - 0.999**step)) + 1e-8)
            p.grad = None


step = 0
bar = trange(EPOCHS, desc="digits", unit=" epochs")
for epoch in bar:
    for batch in cr.randperm(len(train_x)).split(BATCH):
        value = loss(train_x[batch], train_y[batch])
        value.backward()
        step += 1
        adam(step, RATE * (1 - epoch / EPOCHS))
    bar.set_postfix(loss=f"{value.item():.4f}", held_out=f"{accuracy(test_x, test_y):.1%}")

reached = accuracy(test_x, test_y)
print(f"accuracy on {len(test_x)} held-out digits: {reached:.2%} (the goal is {GOAL:.0%})")
sys.exit(reached < GOAL)
