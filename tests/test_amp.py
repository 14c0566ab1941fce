"""``torch.autocast``: disabled regions are accepted, enabled ones raise or warn."""

import warnings

import pytest

from behaviour import differs, torch


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_off(device):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast(device, enabled=False):
            assert not torch.is_autocast_enabled("cpu") and (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32

        @torch.autocast(device_type=device, dtype=torch.float32, enabled=False)
        def f(x):
            return x @ x

        assert f(torch.ones(2, 2)).dtype == torch.float32


def test_without_a_gpu_it_stays_off():
    with pytest.warns(UserWarning, match="autocast|CUDA is not available") as told:
        region = torch.autocast("cuda")
    assert any(warning.filename == __file__ for warning in told) or "CUDA" in str(told[0].message)
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@differs("NumPy has no bfloat16, which PyTorch computes in")
def test_on():
    with pytest.raises(RuntimeError, match="enabled=False"):
        torch.autocast("cpu")


def test_functions():
    class Twice(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, g):
            return 2 * g

    x = torch.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
