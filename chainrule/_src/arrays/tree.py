"""Pytrees: nested containers with arrays (or other objects) as leaves.

Transformations, ``compile`` and ``explain`` flatten arguments with it; ``chainrule.tree`` exports the public names.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from chainrule._src.arrays.types import AnyArray, AnyFunction, NumpyArray


class _Container:
    """The functions that flatten and unflatten one class of containers."""

    __slots__ = ("flatten", "names", "unflatten")

    def __init__(
        self,
        flatten: Callable[[Any], tuple[Sequence[Any], Any]],  # tree -> (children, context)
        unflatten: Callable[[Sequence[Any], Any], Any],  # (children, context) -> tree
        names: Callable[
            [Any, int], Sequence[str]
        ],  # (context, number of children) -> access path of each, as in "['a']"
    ) -> None:
        self.flatten, self.unflatten, self.names = flatten, unflatten, names


class TreeSpec:
    """The structure of a tree: its containers, with a slot for each of the ``num_leaves`` leaves."""

    __module__ = "chainrule.tree"
    __slots__ = ("children", "context", "kind", "num_leaves")

    num_leaves: int

    def __init__(self, kind: type[Any] | None, context: Any, children: tuple[TreeSpec, ...]) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.num_leaves = sum([child.num_leaves for child in children]) if kind is not None else 1

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.kind is other.kind and self.context == other.context and self.children == other.children

    def __hash__(self) -> int:
        return hash((self.kind, self.num_leaves, len(self.children)))

    def __repr__(self) -> str:
        return f"TreeSpec({_text(self)})"


_LEAF = TreeSpec(None, None, ())
_NONE = TreeSpec(type(None), None, ())
_FLAT = tuple(TreeSpec(tuple, None, (_LEAF,) * n) for n in range(17))  # tuples whose items are all leaves


def _text(spec: TreeSpec) -> str:
    if spec.kind is None:
        return "*"
    if spec.kind is type(None):
        return "None"
    parts = ", ".join(_text(child) for child in spec.children)
    if spec.kind is tuple:
        return f"({parts},)" if len(spec.children) == 1 else f"({parts})"
    if spec.kind is list:
        return f"[{parts}]"
    if spec.kind is dict:
        return "{" + ", ".join(f"{k!r}: {_text(c)}" for k, c in zip(spec.context, spec.children, strict=True)) + "}"
    return f"{spec.kind.__name__}({parts})"


# -- container classes -----------------------------------------------------------------------------------------------


def _by_index(context: object, n: int) -> Sequence[str]:
    return [f"[{i}]" for i in range(n)]


def _by_key(context: Iterable[object], n: int) -> Sequence[str]:
    return [f"[{key!r}]" for key in context]


def _by_field(context: Iterable[object], n: int) -> Sequence[str]:
    return [f".{name}" for name in context]


def _mapping(kind: type) -> _Container:
    return _Container(
        lambda tree: (list(tree.values()), tuple(tree)),
        lambda children, keys: kind(zip(keys, children, strict=True)),
        _by_key,
    )


def _named_tuple(kind: Any) -> _Container:
    return _Container(lambda tree: (tree, kind._fields), lambda children, fields: kind._make(children), _by_field)


def _dataclass(kind: Any) -> _Container:
    import dataclasses  # loaded if the program has dataclasses; loading it for all would take longer than this module

    names = tuple(field.name for field in dataclasses.fields(kind))
    get: AnyFunction = (
        attrgetter(*names) if len(names) > 1 else lambda tree: tuple(getattr(tree, name) for name in names)
    )

    def unflatten(children: Sequence[object], fields: Iterable[str]) -> object:
        tree = object.__new__(kind)  # skip __init__, which may check or convert fields that are not arrays here
        for name, child in zip(fields, children, strict=True):
            object.__setattr__(tree, name, child)
        return tree

    return _Container(lambda tree: (get(tree), names), unflatten, _by_field)


class _Labels:
    """The labels of an xarray object: a template of the object without data."""

    __slots__ = ("template",)

    def __init__(self, template: Any) -> None:
        self.template = template

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Labels) and bool(self.template.identical(other.template))

    def __repr__(self) -> str:
        return f"{type(self.template).__name__} of dimensions {tuple(self.template.dims)}"


def _empty_like(x: AnyArray) -> NumpyArray:
    """Return an array with the shape and dtype of x that takes no memory."""
    import numpy as np  # already loaded if xarray is

    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _labelled_array() -> _Container:
    """Return the container for DataArray (or Variable): one leaf, its data; unflattening restores the labels."""

    def unflatten(children: Sequence[object], labels: _Labels) -> object:
        (data,), template = children, labels.template
        shape = getattr(data, "shape", None)
        if shape == template.shape[1:] != template.shape:  # one example in vmap
            template = template.isel({template.dims[0]: 0})
        return template.copy(data=data) if shape == template.shape else data

    return _Container(
        lambda tree: ((tree.data,), _Labels(tree.copy(data=_empty_like(tree.data)))),
        unflatten,
        lambda _, n: [".data"] * n,
    )


def _labelled_arrays() -> _Container:
    """Return the container for Dataset: the data of its variables, without coordinates."""

    def flatten(tree: Any) -> tuple[Sequence[Any], Any]:
        data = {name: variable.data for name, variable in tree.data_vars.items()}
        template = tree.copy(data={name: _empty_like(x) for name, x in data.items()})
        return list(data.values()), _Labels(template)

    def unflatten(children: Sequence[object], labels: _Labels) -> object:
        names = list(labels.template.data_vars)
        return labels.template.copy(data=dict(zip(names, children, strict=True)))

    return _Container(flatten, unflatten, lambda labels, n: [f"[{name!r}]" for name in labels.template.data_vars])


class _Kinds(dict[type | None, Any]):
    """class -> its container, or None for a class whose instances are leaves; filled at first access."""

    def __missing__(self, kind: type) -> _Container | None:
        container = None
        if issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make"):
            container = _named_tuple(kind)
        elif hasattr(kind, "__dataclass_fields__"):
            container = _dataclass(kind)
        elif kind.__module__.startswith("xarray."):
            container = _LABELLED[kind.__name__]() if kind.__name__ in _LABELLED else None
        self[kind] = container
        return container


_LABELLED = {"DataArray": _labelled_array, "Variable": _labelled_array, "Dataset": _labelled_arrays}
_KINDS = _Kinds(
    {
        tuple: _Container(lambda tree: (tree, None), lambda children, _: tuple(children), _by_index),
        list: _Container(lambda tree: (tree, None), lambda children, _: list(children), _by_index),
        dict: _mapping(dict),
        OrderedDict: _mapping(OrderedDict),
        defaultdict: _Container(
            lambda tree: (list(tree.values()), (tree.default_factory, tuple(tree))),
            lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
            lambda context, n: _by_key(context[1], n),
        ),
        deque: _Container(
            lambda tree: (list(tree), tree.maxlen), lambda children, maxlen: deque(children, maxlen), _by_index
        ),
        type(None): _Container(lambda tree: ((), None), lambda children, _: None, _by_index),
        int: None,
        float: None,
        complex: None,
        bool: None,
        str: None,
    }
)
_MAPPINGS = (dict, OrderedDict, defaultdict)


def is_container(x: object) -> bool:
    """Return whether an object is a container or None, rather than a leaf."""
    return _KINDS[type(x)] is not None


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]], unflatten_fn: Callable[[Sequence[Any], Any], Any]
) -> None:
    """Register a class as a container, so that its instances can be arguments and results of transformations.

    Args:
        cls: the class; subclasses are not registered.
        flatten_fn: ``flatten_fn(x) -> (children, context)``, where ``context`` is all other data of ``x``.
        unflatten_fn: ``unflatten_fn(children, context) -> x``.

    Raises:
        ValueError: the class is registered already.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> cr.tree.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda parts, _: Pair(*parts))
    >>> g = cr.func.grad(lambda p: np.sum(p.a * p.b))(Pair(np.array([1., 2.]), np.array([3., 4.])))
    >>> g.a, g.b
    (array([3., 4.]), array([1., 2.]))
    """
    if not isinstance(cls, type):
        raise TypeError(f"register_pytree_node(): expected a class, got {cls!r}")
    if _KINDS.get(cls) is not None:
        raise ValueError(f"{cls} is already registered as pytree node.")

    def flatten(tree: Any) -> tuple[Sequence[Any], Any]:
        children, context = flatten_fn(tree)
        return tuple(children), context

    _KINDS[cls] = _Container(flatten, unflatten_fn, _by_index)


# -- flatten and unflatten -------------------------------------------------------------------------------------------


def _flatten(tree: object, leaves: list[object], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = type(tree)
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    container = _KINDS[kind]
    if container is None:
        leaves.append(tree)
        return _LEAF
    if tree is None:
        return _NONE
    children, context = container.flatten(tree)
    return TreeSpec(kind, context, tuple([_flatten(child, leaves, is_leaf) for child in children]))


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, from left to right, and its structure.

    Args:
        tree: any nesting of containers.
        is_leaf: treat nodes for which it returns True as leaves, even containers and None.

    >>> import chainrule as cr
    >>> leaves, spec = cr.tree.tree_flatten({"a": [1, 2], "b": (None, 3)})
    >>> leaves, spec
    ([1, 2, 3], TreeSpec({'a': [*, *], 'b': (None, *)}))
    >>> cr.tree.tree_unflatten([10, 20, 30], spec)
    {'a': [10, 20], 'b': (None, 30)}
    """
    if is_leaf is None:
        kind = type(tree)
        if kind is tuple:
            if len(tree) < 17:
                for child in tree:
                    if _KINDS.get(type(child), _UNSEEN) is not None:
                        break
                else:
                    return list(tree), _FLAT[len(tree)]
        elif _KINDS.get(kind, _UNSEEN) is None:
            return [tree], _LEAF
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


_UNSEEN = object()


def tree_leaves(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves of a tree, from left to right.

    >>> import chainrule as cr
    >>> cr.tree.tree_leaves([1, {"a": 2}, None])
    [1, 2]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: object, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the structure of a tree, to compare it with another or to unflatten leaves.

    >>> import chainrule as cr
    >>> cr.tree.tree_structure([1, 2]) == cr.tree.tree_structure([3., 4.])
    True
    """
    return tree_flatten(tree, is_leaf)[1]


def _unflatten(spec: TreeSpec, leaves: Iterator[object]) -> Any:
    kind = spec.kind
    if kind is None:
        return next(leaves)
    if kind is tuple:
        return tuple([_unflatten(child, leaves) for child in spec.children])
    children = [_unflatten(child, leaves) for child in spec.children]
    return _KINDS[kind].unflatten(children, spec.context)


def tree_unflatten(leaves: Iterable[object], treespec: TreeSpec) -> Any:
    """Put leaves into a structure: the inverse of :func:`tree_flatten`.

    Raises:
        ValueError: there are more or fewer leaves than the structure has.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): expected treespec to be a TreeSpec, got {type(treespec)}")
    if treespec is _LEAF:
        (leaf,) = leaves
        return leaf
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items ({treespec})."
        )
    if treespec.kind is tuple and len(treespec.children) < 17 and treespec is _FLAT[len(treespec.children)]:
        return tuple(leaves)
    return _unflatten(treespec, iter(leaves))


def unflatten_rows(rows: Iterable[Iterable[object]], inner: TreeSpec, outer: TreeSpec) -> Any:
    """Return a tree ``outer`` of trees ``inner``, from a list with one list of leaves for each leaf of ``outer``."""
    return tree_unflatten([tree_unflatten(row, inner) for row in rows], outer)


def tree_map(func: AnyFunction, tree: object, *rests: object, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Return a tree of ``func``'s results, called with each leaf of ``tree`` and the corresponding nodes of the others.

    Raises:
        ValueError: another tree has a different structure; the message names the position.

    >>> import chainrule as cr
    >>> cr.tree.tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    if not rests:
        return tree_unflatten([func(leaf) for leaf in leaves], spec)
    others = [leaves_like(spec, rest) for rest in rests]
    return tree_unflatten([func(*parts) for parts in zip(leaves, *others, strict=True)], spec)


def tree_map_with_path(
    func: AnyFunction, tree: object, *rests: object, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Apply :func:`tree_map`, with the path of each leaf as the first argument: ``func("['a'][0]", leaf, ...)``.

    >>> import chainrule as cr
    >>> cr.tree.tree_map_with_path(lambda path, x: path, {"a": [1, 2]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [leaves_like(spec, rest) for rest in rests]
    return tree_unflatten([func(*parts) for parts in zip(leaf_paths(spec), leaves, *others, strict=True)], spec)


# -- comparing -------------------------------------------------------------------------------------------------------


def leaf_paths(spec: TreeSpec) -> list[str]:
    """Return the path of each leaf of a structure, as in ``['a'][0]``; "" for a tree that is a single leaf."""
    return list(_paths(spec, ""))


def _paths(spec: TreeSpec, path: str) -> Iterator[str]:
    if spec.kind is None:
        yield path
        return
    for name, child in zip(_names(spec), spec.children, strict=True):
        yield from _paths(child, path + name)


def _names(spec: TreeSpec) -> Sequence[str]:
    names: Sequence[str] = _KINDS[spec.kind].names(spec.context, len(spec.children))
    return names


def leaves_like(spec: TreeSpec, tree: Any, strict: bool = False) -> list[Any]:
    """Return the nodes of ``tree`` at the leaves of ``spec``: leaves, or (unless ``strict``) whole subtrees.

    Dictionaries may have their keys in another order.

    Raises:
        ValueError: the structures differ; the message names the first difference.
    """
    if not strict or tree_structure(tree) is not spec:
        found: list[Any] = []
        _collect(spec, tree, "", found, strict)
        return found
    return tree_leaves(tree)


def _collect(spec: TreeSpec, tree: Any, path: str, found: list[Any], strict: bool) -> None:
    if spec.kind is None:
        if strict and tree_structure(tree) is not _LEAF:
            raise _mismatch(path, "a leaf", _type_text(type(tree)))
        found.append(tree)
        return
    if type(tree) is not spec.kind:
        raise _mismatch(path, _type_text(spec.kind), _type_text(type(tree)))
    children, context = _KINDS[spec.kind].flatten(tree)
    if spec.kind in _MAPPINGS:
        keys = spec.context[1] if spec.kind is defaultdict else spec.context
        have = context[1] if spec.kind is defaultdict else context
        if len(keys) != len(have) or set(keys) != set(have):
            raise _mismatch(path, f"the keys {list(keys)}", f"{list(have)}")
        children = [tree[key] for key in keys]
    elif len(children) != len(spec.children):
        raise _mismatch(path, f"{_type_text(spec.kind)} of length {len(spec.children)}", f"length {len(children)}")
    elif context != spec.context:
        raise _mismatch(path, f"{_type_text(spec.kind)} with {spec.context!r}", f"{context!r}")
    for name, child, part in zip(_names(spec), spec.children, children, strict=True):
        _collect(child, part, path + name, found, strict)


def _type_text(kind: type | None) -> str:
    if kind is type(None):
        return "None"
    container = _KINDS.get(kind)
    name = getattr(kind, "__name__", str(kind))
    return f"a leaf ({name})" if container is None else f"a {name}"


def _mismatch(path: str, expected: str, got: str) -> ValueError:
    return ValueError(f"the trees differ{f' at {path}' if path else ''}: expected {expected}, got {got}")


def broadcast_prefix(prefix: Any, spec: TreeSpec, is_leaf: Callable[[Any], bool]) -> list[Any] | None:
    """Return the leaves of ``prefix``, each repeated for the leaves of its subtree of ``spec``; None if it is not a prefix."""
    if is_leaf(prefix):
        return [prefix] * spec.num_leaves
    if spec.kind is None or type(prefix) is not spec.kind:
        return None
    children, context = _KINDS[spec.kind].flatten(prefix)
    if spec.kind is dict and context != spec.context and set(context) == set(spec.context):
        children, context = [prefix[key] for key in spec.context], spec.context
    if len(children) != len(spec.children) or context != spec.context:
        return None
    found: list[Any] = []
    for child, part in zip(spec.children, children, strict=True):
        below = broadcast_prefix(part, child, is_leaf)
        if below is None:
            return None
        found.extend(below)
    return found
