"""Data sets, samplers and loaders: the same tests for PyTorch and chainrule."""

from __future__ import annotations

import math
import types
from collections import namedtuple

import numpy as np
import pytest

from behaviour import differs, torch

data = torch.utils.data
Point = namedtuple("Point", "x y")


class Squares(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        return torch.tensor(float(i)), i * i

    def __len__(self):
        return self.n


class Counting(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


class AtOnce(Squares):
    def __getitems__(self, indices):
        return [(torch.tensor(-1.0), i) for i in indices]


def lists(batches):
    return [batch.tolist() if isinstance(batch, torch.Tensor) else [b.tolist() for b in batch] for batch in batches]


def test_batches_in_order():
    loader = data.DataLoader(Squares(5), batch_size=2)
    assert lists(loader) == lists(loader) == [[[0, 1], [0, 1]], [[2, 3], [4, 9]], [[4], [16]]]
    assert len(loader) == 3 and loader.dataset.n == 5 and loader.batch_size == 2 and len(loader.sampler) == 5
    assert next(iter(loader))[1].dtype == torch.int64
    last = data.DataLoader(Squares(5), 2, drop_last=True)
    assert len(last) == 2 and len(list(last)) == 2
    assert lists(data.DataLoader(AtOnce(3), 3)) == [[[-1, -1, -1], [0, 1, 2]]]
    assert next(iter(data.DataLoader([1.5, 2.5], 2))).dtype == torch.float64


def test_without_batches():
    found = list(data.DataLoader([np.ones(2), "a"], batch_size=None))
    assert isinstance(found[0], torch.Tensor) and found[0].tolist() == [1, 1] and found[1] == "a"
    assert list(data.DataLoader(Counting(3), batch_size=None)) == [0, 1, 2]
    assert len(data.DataLoader(Counting(3), batch_size=None)) == 3


def test_random_order():
    torch.manual_seed(0)
    loader = data.DataLoader(range(20), batch_size=20, shuffle=True)
    first, second = next(iter(loader)).tolist(), next(iter(loader)).tolist()
    assert sorted(first) == sorted(second) == list(range(20)) and first != second and first != sorted(first)
    torch.manual_seed(0)
    assert next(iter(data.DataLoader(range(20), batch_size=20, shuffle=True))).tolist() == first
    one, other = (data.DataLoader(range(9), 9, True, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert lists(one) == lists(other)


def test_own_order():
    assert lists(data.DataLoader(range(10), 2, sampler=[7, 1, 3])) == [[7, 1], [3]]
    assert lists(data.DataLoader(range(10), batch_sampler=[[7], [1, 3]])) == [[7], [1, 3]]
    joined = data.DataLoader(range(4), 3, collate_fn=lambda samples: sum(samples))
    assert list(joined) == [3, 3]


def test_what_is_gone_through():
    loader = data.DataLoader(Counting(5), batch_size=2)
    assert lists(loader) == lists(loader) == [[0, 1], [2, 3], [4]] and len(loader) == 3
    assert lists(data.DataLoader(Counting(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    chained = Counting(2) + Counting(1)
    assert list(chained) == [0, 1, 0] and len(chained) == 3
    with pytest.raises(AssertionError):
        list(data.ChainDataset([[1]]))


def test_tensors_side_by_side():
    x, y = torch.arange(6.0).reshape(3, 2), torch.arange(3)
    pairs = data.TensorDataset(x, y)
    assert len(pairs) == 3 and pairs[1][0].tolist() == [2, 3] and pairs[1:][1].tolist() == [1, 2]
    assert pairs.tensors[0] is x
    assert [[b.shape[0] for b in batch] for batch in data.DataLoader(pairs, 2)] == [[2, 2], [1, 1]]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(x, torch.ones(2))
    w = torch.ones(3, requires_grad=True)
    (batch,) = next(iter(data.DataLoader(data.TensorDataset(w), 2)))
    batch.sum().backward()
    assert w.grad.tolist() == [1, 1, 0]


@differs("its TensorDataset takes tensors alone")
def test_arrays_side_by_side():
    batch = next(iter(data.DataLoader(data.TensorDataset(np.arange(3.0), torch.arange(3)), 2)))
    assert batch[0].tolist() == [0, 1] and batch[0].dtype == torch.float64
    w = torch.Array([1.0, 2.0])
    assert next(iter(data.DataLoader([w, w], 2))).shape == (2, 2)


def test_sets_of_sets():
    both = data.ConcatDataset([range(3), [10, 11]])
    assert len(both) == 5 and [both[i] for i in (0, 2, 3, 4, -1, -5)] == [0, 2, 10, 11, 11, 0]
    assert list(Squares(1) + Squares(2))[2] == (1.0, 1)
    for index, kind in [(5, IndexError), (-6, ValueError)]:
        with pytest.raises(kind):
            both[index]
    with pytest.raises(AssertionError):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        data.ConcatDataset([Counting(2)])
    named = data.StackDataset(a=range(2), b=AtOnce(2))
    assert named[1] == {"a": 1, "b": (1.0, 1)} and named.__getitems__([0])[0]["b"] == (-1.0, 0)
    assert data.StackDataset(range(2), [5, 6])[1] == (1, 6) and len(named) == 2
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(range(2), range(3))


def test_subsets():
    part = data.Subset(Squares(5), [4, 2])
    assert len(part) == 2 and part[1] == (2.0, 4) and part.__getitems__([0]) == [(4.0, 16)]
    assert data.Subset(torch.arange(5), [4, 2])[[0, 1]].tolist() == [4, 2]
    assert data.Subset(AtOnce(5), [4, 2]).__getitems__([1])[0][0] == -1
    with pytest.raises(NotImplementedError, match="__getitems__"):
        type("Half", (data.Subset,), {"__getitem__": lambda self, i: 0})(range(3), [0])


def test_splits():
    generator = torch.Generator().manual_seed(42)
    parts = data.random_split(range(10), [3, 7], generator=generator)
    assert [len(part) for part in parts] == [3, 7]
    assert sorted(i for part in parts for i in part) == list(range(10))
    assert [len(part) for part in data.random_split(range(11), [0.3, 0.3, 0.4])] == [4, 3, 4]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(2), [0.9, 0.1])
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="not between 0 and 1"):
        data.random_split(range(10), [1.5, -0.5])


def test_samplers():
    assert list(data.SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(data.RandomSampler("abc")) == [0, 1, 2]
    some = list(data.RandomSampler("abc", num_samples=7))
    assert len(some) == 7 and sorted(some[:3]) == sorted(some[3:6]) == [0, 1, 2]
    again = list(data.RandomSampler(range(2), replacement=True, num_samples=40))
    assert len(again) == 40 and set(again) == {0, 1}
    assert sorted(data.SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    weighted = data.WeightedRandomSampler([0.0, 3.0, 1.0], 50)
    assert set(weighted) == {1, 2} and len(weighted) == 50
    assert sorted(data.WeightedRandomSampler([0.5, 3.0], 2, replacement=False)) == [0, 1]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(data.BatchSampler(range(5), 2, last)) for last in (True, False)] == [2, 3]


@pytest.mark.parametrize(
    ("batch", "wanted"),
    [
        ([1, 2], torch.tensor([1, 2])),
        ([True, False], torch.tensor([True, False])),
        ([1.0, 2.0], torch.tensor([1.0, 2.0], dtype=torch.float64)),
        ([np.float32(1), np.float32(2)], torch.tensor([1.0, 2.0])),
        ([np.arange(2), np.arange(2)], torch.tensor([[0, 1], [0, 1]])),
        ([torch.ones(1), torch.zeros(1)], torch.tensor([[1.0], [0.0]])),
        (["a", "b"], ["a", "b"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([(1, "a"), (2, "b")], [torch.tensor([1, 2]), ("a", "b")]),
        ([[1], [2]], [torch.tensor([1, 2])]),
        ([Point(1, 2.0), Point(3, 4.0)], Point(torch.tensor([1, 3]), torch.tensor([2.0, 4.0], dtype=torch.float64))),
        ([{"k": 1}, {"k": 2}], {"k": torch.tensor([1, 2])}),
        ([types.MappingProxyType({"k": 1})], {"k": torch.tensor([1])}),
        ([range(2), range(2)], [torch.tensor([0, 0]), torch.tensor([1, 1])]),
    ],
    ids=str,
)
def test_collating(batch, wanted):
    def same(found, wanted):
        if isinstance(wanted, torch.Tensor):
            return found.dtype == wanted.dtype and torch.equal(found, wanted)
        if isinstance(wanted, dict):
            return all(same(found[key], wanted[key]) for key in wanted)
        if isinstance(wanted, (tuple, list)):
            return type(found) is type(wanted) and all(map(same, found, wanted))
        return found == wanted

    assert same(data.default_collate(batch), wanted)


def test_what_cannot_be_collated():
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        data.default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        data.default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="should be of equal size"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        data.default_collate([torch.ones(1), torch.ones(2)])


def test_converting():
    found = data.default_convert({"a": np.ones(1), "b": [np.float64(2), "x"], "c": (np.arange(1),)})
    assert isinstance(found["a"], torch.Tensor) and found["b"][0].item() == 2 and found["b"][1] == "x"
    assert isinstance(found["c"], list) and isinstance(found["c"][0], torch.Tensor)
    assert isinstance(data.default_convert(Point(np.ones(1), 2)), Point)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: data.DataLoader([1], shuffle=True, sampler=[0]), ValueError, "mutually exclusive with shuffle"),
        (
            lambda: data.DataLoader([1], 2, batch_sampler=[[0]]),
            ValueError,
            "batch_sampler option is mutually exclusive",
        ),
        (lambda: data.DataLoader([1], None, drop_last=True), ValueError, "batch_size=None option disables"),
        (lambda: data.DataLoader([1], 0), ValueError, "batch_size should be a positive integer"),
        (lambda: data.DataLoader([1], num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (lambda: data.DataLoader([1], timeout=-1), ValueError, "timeout option should be non-negative"),
        (lambda: data.DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor option"),
        (lambda: data.DataLoader([1], persistent_workers=True), ValueError, "persistent_workers option needs"),
        (lambda: data.DataLoader(Counting(2), shuffle=True), ValueError, "expected unspecified shuffle option"),
        (lambda: data.DataLoader(Counting(2), sampler=[0]), ValueError, "expected unspecified sampler option"),
        (lambda: data.RandomSampler([]), ValueError, "num_samples should be a positive integer"),
        (lambda: data.RandomSampler([1], replacement=1), TypeError, "replacement should be a boolean"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "weights should be a 1d sequence"),
        (lambda: data.BatchSampler([1], 1, None), ValueError, "drop_last should be a boolean"),
        (lambda: data.Dataset()[0], NotImplementedError, "__getitem__"),
        (lambda: setattr(data.DataLoader([1]), "batch_size", 3), ValueError, "should not be set after DataLoader"),
    ],
)
def test_refusals(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@differs("it starts processes")
def test_workers():
    with pytest.warns(UserWarning, match="num_workers=2 has no effect") as found:
        loader = data.DataLoader(Squares(3), 2, num_workers=2, persistent_workers=True, prefetch_factor=3)
    assert found[0].filename == __file__
    assert lists(loader) == lists(data.DataLoader(Squares(3), 2)) and data.get_worker_info() is None
    with pytest.raises(ValueError, match="would yield the data 2 times"):
        data.DataLoader(Counting(3), num_workers=2)


def test_a_loop_of_training():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 32, dtype=torch.float64)
    loader = data.DataLoader(data.TensorDataset(x, 3 * x + 0.5), batch_size=8, shuffle=True, pin_memory=False)
    w, b = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([w, b], lr=0.3)
    for _ in range(40):
        for xs, ys in loader:
            optimizer.zero_grad()
            (w * xs + b - ys).square().mean().backward()
            optimizer.step()
    assert math.isclose(w.item(), 3, abs_tol=1e-6) and math.isclose(b.item(), 0.5, abs_tol=1e-6)


def test_names_of_modules():
    from importlib import import_module

    home = data.__name__
    assert import_module(f"{home}.dataloader").default_collate is data.default_collate
    assert import_module(f"{home}.dataset").Dataset is data.Dataset
    assert import_module(f"{home}.sampler").Sampler is data.Sampler
