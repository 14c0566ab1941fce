"""Data sets, samplers of indices, and a loader of batches in this process, with the names of ``torch.utils.data``.

>>> import chainrule as cr
>>> from chainrule.utils.data import DataLoader, TensorDataset
>>> x, y = cr.arange(5.0), cr.arange(5)
>>> for xs, ys in DataLoader(TensorDataset(x, y), batch_size=2):
...     print(xs, ys)
tensor([0., 1.]) tensor([0, 1])
tensor([2., 3.]) tensor([2, 3])
tensor([4.]) tensor([4])
"""

from chainrule._src.api.public_modules import show
from chainrule.utils.data import dataloader, dataset, sampler
from chainrule.utils.data.collate import default_collate, default_convert
from chainrule.utils.data.dataloader import DataLoader, get_worker_info
from chainrule.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from chainrule.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "dataloader",
    "dataset",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
    "sampler",
]

show(globals())
