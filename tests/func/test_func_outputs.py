"""Results that ``func.grad`` accepts: one real number."""

import pytest

from behaviour import torch

REAL, COMPLEX = torch.tensor(1.5), torch.tensor(1.5 + 0.5j)


@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.grad_and_value])
def test_complex_output_has_no_gradient(transform):
    for function, x in (
        (lambda x: x * (1 + 0.2j), REAL),
        (lambda z: z * z, COMPLEX),
        (lambda x: torch.sin(x) * 1j, torch.tensor(2.0, dtype=torch.float64)),
    ):
        with pytest.raises(RuntimeError, match="only for real scalar outputs but got"):
            transform(function)(x)


def test_a_real_number_from_complex_ones():
    g = torch.func.grad(lambda z: (z * z.conj()).real)(COMPLEX)
    assert torch.allclose(g, 2 * COMPLEX)
