"""Messages about saving and loading."""

from __future__ import annotations

from chainrule._src.messages.kinds import TorchFile


def torch_file(name: object) -> TorchFile:
    return TorchFile(
        f"{name} is a pickle, as written by torch.save. Reading a pickle can run arbitrary code, so load() refuses "
        "it. Convert it where PyTorch is installed: safetensors.torch.save_file(torch.load(path), "
        "'file.safetensors'), or numpy.savez('file.npz', **{k: v.numpy() for k, v in torch.load(path).items()})."
    )


def torch_file_to_write(name: str, suffix: object, stem: object) -> TorchFile:
    return TorchFile(
        f"save(): {name}: PyTorch expects a pickle in a {suffix} file, and save() writes no pickles, because "
        f"reading one can run arbitrary code. Name it {stem}.safetensors, which PyTorch can read as well, or "
        f"{stem}.npz; load() reads both."
    )


def only_weights() -> ValueError:
    return ValueError(
        "load() never runs code from a file, so weights_only=False is not possible: omit it. For pickled objects "
        "that you trust, use pickle.load."
    )


def cannot_save(value: object, where: object) -> TypeError:
    return TypeError(
        f"save(): {where} is a {type(value).__name__}: only tensors, arrays of numbers, numbers, text, None, and "
        "dictionaries, lists and tuples of them can be saved. (pickle saves other Python objects.)"
    )


def needs_safetensors() -> ImportError:
    return ImportError(
        "the safetensors format needs the safetensors library, which is not installed: pip install "
        "chainrule[safetensors]; .npz files need no library"
    )


def unknown_suffix(path: str, suffix: str, writing: bool) -> ValueError:
    if suffix in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"):
        return torch_file_to_write(path, suffix, path[: -len(suffix)]) if writing else torch_file(path)
    hint = " (for one array, use numpy.load and from_numpy)" if suffix == ".npy" else ""
    return ValueError(
        f"{path!r} ends in {suffix!r}, which is not a format of save() and load(): use the suffix .npz or "
        f".safetensors, or pass format='npz' or format='safetensors'{hint}."
    )


def graph_format(path: object, endings: list[str]) -> ValueError:
    return ValueError(
        f"save(): unknown format {str(path)!r}: use the suffix {', '.join(endings[:-1])} or {endings[-1]}"
    )
