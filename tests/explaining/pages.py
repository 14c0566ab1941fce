"""Programs whose explanations are shown as pages."""

from __future__ import annotations

import copy

import numpy as np

import chainrule as torch
from chainrule._src.explaining.notation import MATHML
from chainrule.explaining import explain

GRADIENT = np.array([[2.0, 3, -3, 9], [-8, 1, 4, 6]])


def exp_of_product(gradient=GRADIENT, dtype=torch.float64):
    """Return Y = exp(X W) with a given gradient of Y: (X, W, Z, Y, explanation)."""
    X = torch.tensor([[2.0, 1, -3], [-3, 4, 2]], dtype=dtype, requires_grad=True)
    W = torch.tensor([[3.0, 2, 1, -1], [2, 1, 3, 2], [3, 2, 1, -2]], dtype=dtype, requires_grad=True)
    Z = torch.matmul(X, W)
    Y = torch.exp(Z)
    return X, W, Z, Y, explain(Y, grad=torch.tensor(gradient, dtype=dtype), wrt=[X, W])


def outer_with_itself(gradient=None):
    """Return y = outer(x, x) with a gradient of ones: (x, y, explanation)."""
    x = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
    y = torch.outer(x, x)
    return x, y, explain(y, grad=torch.ones_like(y) if gradient is None else torch.tensor(gradient), wrt=[x])


def long_chain(n=1000):
    """Compute 2 n operations in sequence, each of another kind than the previous one."""
    x = torch.tensor([0.1, 0.2], requires_grad=True)
    y = x
    for _ in range(n):
        y = torch.sin(y) * 1.01
    return explain(y, grad=torch.ones_like(y), wrt=[x])


def bushy(n=500):
    """Compute about n operations that are added up."""
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    parts = [torch.sin(x * (1 + k)) + torch.exp(x) for k in range(n // 5)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return explain(total, grad=torch.ones_like(total), wrt=[x])


def layers(weights, x):
    for _ in range(3):
        x = torch.tanh(x @ weights["W"]) + weights["b"]
    return x


def fit(weights, x):
    return ((layers(weights, x) - x) ** 2).mean()


def three_terms():
    """A function that calls functions and returns a sum: an explanation of more than 60 steps."""

    def loss(weights):
        near = fit(weights, np.linspace(0, 1, 6).reshape(3, 2))
        far = fit(weights, np.linspace(2, 5, 6).reshape(3, 2))
        size = sum((w**2).sum() for w in weights.values())
        total = 0.0
        for _ in range(12):
            total = total + torch.sin(weights["b"]).sum()
        return near + far + 0.1 * size + total

    return explain(loss)({"W": np.array([[0.5, -0.2], [0.1, 0.3]]), "b": np.array([0.1, -0.1])})


def network():
    """A loss with layers: rules that are long calls, and leaves with long names."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    loss = torch.nn.functional.cross_entropy(model(torch.ones(2, 1, 6, 6)), torch.tensor([0, 2]))
    return explain(loss, wrt=list(model.parameters()))


MARKUP = "</script><script>document.title='taken'</script><img src=x onerror=document.title='taken'>"


def poisoned():
    """Return the plan of a page in which all texts contain markup."""
    plan = copy.deepcopy(exp_of_product()[-1].to_dict())
    plan["title"] = MARKUP
    for value in plan["values"].values():
        value["name"], value["bar"], value["role"], value["dtype"] = MARKUP, MARKUP, MARKUP, MARKUP
        value["line"] = {"file": MARKUP, "line": 1, "text": MARKUP}
    for step in plan["steps"]:
        step.update(
            op=MARKUP, node=MARKUP, doc=MARKUP, notes=[MARKUP], line={"file": MARKUP, "line": 2, "text": MARKUP}
        )
        for arrow in step["arrows"]:
            arrow.update(structure_text=MARKUP, numbers=MARKUP, unbroadcast=MARKUP)
            arrow["rule"] = {
                "numpy": MARKUP,
                "latex": MARKUP,
                "mathml": MATHML.put("formula", MATHML.name(MARKUP) + MATHML.quoted("code", MARKUP)),
                "index": MARKUP,
            }
    for node in plan["graph"]["nodes"]:
        node["label"] = MARKUP
    for edge in plan["graph"]["edges"]:
        edge["why"] = edge["label"] = MARKUP
    plan["lessons"] = [{"kind": "seed_is_output_grad", "text": MARKUP}, {"kind": "wrong_shape_would", "text": MARKUP}]
    return plan
