"""Answers with numbers to five frequent questions about backward()."""

import chainrule as cr
from chainrule.autograd import grad
from chainrule.autograd.functional import jacobian


def say(question: str, *answers: object) -> None:
    print(f"\n{question}\n{'─' * len(question)}", *answers, sep="\n")


X = cr.tensor([[2.0, 1.0, -3.0], [-3.0, 4.0, 2.0]], requires_grad=True)
W = cr.tensor([[3.0, 2.0, 1.0, -1.0], [2.0, 1.0, 3.0, 2.0], [3.0, 2.0, 1.0, -2.0]], requires_grad=True)
Y = cr.exp(X @ W)
Y.retain_grad()
G = cr.tensor([[2.0, 3.0, -3.0, 9.0], [-8.0, 1.0, 4.0, 6.0]])
Y.backward(G)
say(
    "1. Y = exp(X @ W). Why is Y.grad what I passed to backward()?",
    Y,
    f"Y.grad is ∂L/∂Y, one number per element of Y, and that is what backward(G) was given:\n{Y.grad}",
    f"X.grad is ∂L/∂X = (G ⊙ Y) Wᵀ, of the shape of X:\n{X.grad}",
)

a = cr.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
out = a * a
out.backward(a, retain_graph=True)
twice = a.grad
a.grad = None
out.backward(cr.ones(2, 3))
say(
    "2. out = a * a. Why does out.backward(a) give 2a², not 2a?",
    f"The argument is ∂L/∂out, and a.grad = ∂L/∂out ⊙ 2a. With ∂L/∂out = a that is 2a²:\n{twice}",
    f"2a is the gradient of out.sum(), for which ∂L/∂out is all ones:\n{a.grad}",
)

A, B = cr.ones(2, 3, requires_grad=True), cr.eye(3, requires_grad=True)
C = A @ B
to_A, to_B = C.grad_fn(cr.ones(2, 3))
say(
    "3. C = A @ B. Are matrices differentiated element by element?",
    f"No: the product is one node, {C.grad_fn.name()}, with one rule for whole tensors. It has saved B and A,",
    f"and maps ∂L/∂C to ∂L/∂A = ∂L/∂C Bᵀ and ∂L/∂B = Aᵀ ∂L/∂C:\n{to_A}\n{to_B}",
)

x = cr.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
y = cr.outer(x, x)
(total,) = grad(y, x, grad_outputs=cr.ones_like(y), retain_graph=True)
say(
    "4. y = outer(x, x). What are grad_outputs, and where does 20 come from?",
    "grad_outputs is ∂L/∂y, so it has the shape of y. Ones mean L = y.sum() = (Σx)²,",
    f"and ∂L/∂x = 2 Σx = 20 for every element of x:\n{total}",
)
try:
    grad(y, x, grad_outputs=cr.ones_like(x))
except RuntimeError as error:
    print(f"grad_outputs of the shape of x raises an error:\n{error}")

a = cr.tensor([1.0, 2.0, 3.0])
b = cr.tensor([4.0, 5.0, 6.0], requires_grad=True)
c = a * b
rows = [grad(c, b, unit, retain_graph=True)[0] for unit in cr.eye(3)]
say(
    "5. c = a * b. How do I get all of ∂c/∂b?",
    f"With a backward pass for every element of c, whose results are the rows of the Jacobian:\n{cr.stack(rows)}",
    f"or with jacobian, which gives a tensor of shape (*c.shape, *b.shape):\n{jacobian(lambda b: a * b, b)}",
)
