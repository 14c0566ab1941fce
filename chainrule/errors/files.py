"""Saving and loading."""

from __future__ import annotations

from typing import Any


class TorchFile(ValueError):
    """A file of PyTorch's own format, which only PyTorch reads."""


def torch_file(name: Any) -> TorchFile:
    return TorchFile(
        f"{name} is a pickle, as torch.save writes it. Reading a pickle can run any code, so load() never does. Convert it "
        "where PyTorch is installed: safetensors.torch.save_file(torch.load(path), 'file.safetensors'), or "
        "numpy.savez('file.npz', **{k: v.numpy() for k, v in torch.load(path).items()})."
    )


def unknown_suffix(path: str, suffix: str) -> ValueError:
    if suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"):
        return torch_file(path)
    hint = " (for one array, use numpy.load and from_numpy)" if suffix == ".npy" else ""
    return ValueError(
        f"{path!r} ends in {suffix!r}, which says nothing about a format that save() and load() know: name it .npz or "
        f".safetensors, or give format='npz' or format='safetensors'{hint}."
    )


def only_weights() -> ValueError:
    return ValueError(
        "load() never runs code from a file, so weights_only=False is not possible: leave it out. For pickled objects that "
        "you trust there is pickle.load."
    )


def cannot_save(value: Any, where: str) -> TypeError:
    return TypeError(
        f"save(): {where} is a {type(value).__name__}, which is not data: only tensors, arrays of numbers, numbers, text, "
        "None, and dictionaries, lists and tuples of them can be saved. (pickle saves Python objects.)"
    )


def needs_safetensors() -> ImportError:
    return ImportError(
        "the safetensors format is read and written by the library of that name, which is not installed: "
        "pip install chainrule[safetensors]; .npz files need nothing"
    )


def graph_format(path: Any, endings: list[str]) -> ValueError:
    return ValueError(
        f"save(): can't tell the format from {str(path)!r}: end it with {', '.join(endings[:-1])} or {endings[-1]}"
    )
