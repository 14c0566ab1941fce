"""Whether writes into a result reach its operand: the same inside and outside transformations, and as in NumPy."""

import numpy as np
import pytest

import chainrule as cr

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
OF_TENSORS = """y.T.reshape(-1) | y.reshape(-1) | y.T.flatten() | y.flatten() | y.tile(1) | y.tile(2) | y.repeat(1, 1)
    | y.repeat(2, 1) | y.roll(0) | y.flip(0) | y.repeat_interleave(1) | y.contiguous() | y.T.contiguous() | y.clone()
    | y.squeeze() | y.diagonal() | y.ravel() | y.T.ravel() | y.narrow(0, 0, 1) | y.double() | y.unfold(0, 1, 1)
    | y.tril(5) | y.tensor_split(1)[0] | y.sum(()) | y.conj() | y.real | y.positive() | y.type_as(y)
    | y.view_as(y) | y.movedim(0, 0) | y.broadcast_to((2, 3)) | y.unflatten(1, (3, 1)) | y.masked_fill(y > 99, 0.)
    | y.cumsum(0) | y[:, ::2].contiguous() | y[0].contiguous()"""
OF_ARRAYS = """y.T.reshape(-1) | y.reshape(-1) | y.T.flatten() | y.flatten() | y.repeat(1) | y.squeeze() | y.ravel() | y.T.ravel()
    | y.copy() | y.astype(float) | y.astype(float, copy=False) | y.conj() | y.real | y.round(9) | y.view() | y.clip(-9, 9)
    | y.swapaxes(0, 0) | y.T | y.mT | y.reshape(3, 2, order='F') | y.sum(()) | np.tile(y, 1) | np.tile(y, (2, 1))
    | np.roll(y, 0) | np.flip(y) | np.flip(y, ()) | np.fliplr(y) | np.flipud(y) | np.rot90(y, 0) | np.rot90(y) | np.rot90(y, 2)
    | np.rot90(y, -1) | np.repeat(y, 1, axis=0) | np.pad(y, 0) | np.concatenate([y]) | np.hstack([y]) | np.stack([y])[0]
    | np.array_split(y, 1)[0] | np.split(y, [1])[0] | np.atleast_2d(y) | np.atleast_3d(y) | np.expand_dims(y, 0)
    | np.squeeze(y) | np.ravel(y) | np.real(y) | np.conj(y) | np.positive(y) | np.moveaxis(y, 0, 0) | np.delete(y, [], axis=0)
    | np.append(y, np.empty((0, 3)), axis=0) | np.resize(y, (2, 3)) | np.triu(y, -5) | np.tril(y, 5)
    | np.meshgrid(y, y)[0] | np.nan_to_num(y) | np.copy(y) | np.take(y, [0, 1], axis=0) | y[:] | y[...] | y[[0, 1]]
    | y[[True, True]] | y[:, [0, 1]] | np.where(True, y, y) | np.clip(y, None, 9) | np.reshape(y, (3, 2)) | np.transpose(y)
    | np.einsum('ij->ij', y) | np.einsum('ij->ji', y) | np.add.reduce(y, axis=()) | np.diff(y, n=0) | np.block([[y]])
    | np.column_stack([y]) | np.swapaxes(y, 0, 1) | np.rollaxis(y, 0) | y[::-1] | y[0, ...] | y[0] | y[..., None]"""


def cases(text: str) -> list[str]:
    return [" ".join(case.split()) for case in text.split(" | ")]


@pytest.mark.parametrize("case", cases(OF_TENSORS))
def test_tensors(case: str) -> None:
    def written(x):
        y = x * 1
        z = eval(case, {"y": y})
        z.mul_(3.0)
        return y.sum() + 1024 * z.sum()

    def base_written(x):
        y = x * 1
        z = eval(case, {"y": y})
        y.mul_(3.0)
        return z.sum()

    x = cr.tensor(X)
    for f in (written, base_written):
        expected = f(x).item()
        assert cr.func.jvp(f, (x,), (x,))[0].item() == pytest.approx(expected)
        assert cr.func.grad_and_value(f)(x)[1].item() == pytest.approx(expected)
        assert cr.vmap(f)(cr.stack([x, x])).tolist() == pytest.approx([expected] * 2)
        assert cr.vmap(cr.func.grad_and_value(f))(cr.stack([x, x]))[1].tolist() == pytest.approx([expected] * 2)


@pytest.mark.parametrize("case", cases(OF_ARRAYS))
def test_arrays(case: str) -> None:
    def written(x):
        y = x * 1
        z = eval(case, {"y": y, "np": np})
        z *= 3.0
        return np.sum(y) + 1024 * np.sum(z)

    def base_written(x):
        y = x * 1
        z = eval(case, {"y": y, "np": np})
        y *= 3.0
        return np.sum(z)

    for f in (written, base_written):
        expected = f(X.copy())
        assert cr.func.value_and_grad(f)(X)[0] == pytest.approx(expected)
        assert cr.func.jvp(f, (X,), (X,))[0] == pytest.approx(expected)
        assert cr.vmap(f)(np.stack([X, X])).tolist() == pytest.approx([expected] * 2)
