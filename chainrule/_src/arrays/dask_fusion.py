"""Fuse the tasks of Dask graphs: all operations of a gradient on one chunk of data become one task.

``dask_arrays.compute_arrays`` calls ``with_fused_tasks``.

Dask fuses linear chains. A gradient is not a chain: it uses the data and many intermediate results twice. As separate tasks
these steps keep the block in memory, move it between workers, and cost the scheduler more than the arithmetic costs. Here,
tasks for the same block position are merged into a group, which returns the results that other groups need.

The group of a task is its block position and its stage, the number of changes of the position on the path to the task. Between groups
stages only increase, so groups never wait for each other in a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any

import dask.array as da
from dask.array.optimization import optimize
from dask.base import tokenize
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph

try:
    from dask._task_spec import Alias, DataNode, GraphNode, Task, TaskRef
except ImportError:  # another version of Dask: use Dask's own fusion
    Task = None  # type: ignore[assignment, misc, unused-ignore]

TaskGraph = dict[Any, Any]


class TaskGroup:
    """Tasks that run one after the other, as one task.

    Args:
        nodes: the tasks, in execution order.
        outputs: keys of the returned results.
        sources: for each argument, the key of the result that it contains, or a tuple of keys.
    """

    __slots__ = ("last", "nodes", "outputs", "sources")

    def __init__(self, nodes: list[Any], outputs: list[Any], sources: list[Any]) -> None:
        self.nodes, self.outputs, self.sources = nodes, outputs, sources

    def __call__(self, *arguments: Any) -> Any:
        values: TaskGraph = {}
        for (several, keys), argument in zip(self.sources, arguments, strict=True):
            values.update(zip(keys, argument if several else (argument,), strict=True))
        uses: TaskGraph = defaultdict(int)
        for node in self.nodes:
            for key in node.dependencies:
                uses[key] += 1
        for node in self.nodes:
            values[node.key] = node({key: values[key] for key in node.dependencies})
            for key in node.dependencies:
                uses[key] -= 1
                if not uses[key] and key not in self.outputs:
                    del values[key]
        found = tuple([values[key] for key in self.outputs])
        return found if len(found) > 1 else found[0]


def with_fused_tasks(arrays: list[Any]) -> list[Any]:
    """Rewrite Dask arrays to use one smaller graph, with the same values."""
    keys = [x.__dask_keys__() for x in arrays]
    graph = dict(optimize(HighLevelGraph.merge(*[x.dask for x in arrays]), keys))
    if Task is None or not all(isinstance(node, GraphNode) for node in graph.values()):
        return arrays
    found = _fuse(graph, set(flatten(keys)))
    return [da.Array(found, result_key((x.name,))[0], x.chunks, meta=x._meta) for x in arrays]


def _fuse(graph: TaskGraph, requested: set[Any]) -> TaskGraph:
    aliases = {key: node.target for key, node in graph.items() if isinstance(node, Alias) and key not in requested}
    aliases = _resolve_aliases({key: target for key, target in aliases.items() if target in graph})
    if aliases:
        graph = {key: node.substitute(aliases) for key, node in graph.items() if key not in aliases}
    order = _topological_order(graph)
    users: dict[Any, list[Any]] = defaultdict(list)
    for key in order:
        for needed in graph[key].dependencies:
            users[needed].append(key)
    position = _block_positions(graph, order, users, {target: key for key, target in aliases.items()})
    stage = _stages(graph, order, users, position)
    members: dict[Hashable, list[Any]] = defaultdict(list)
    for key in order:
        members[position[key], stage[key]].append(key)
    return _group_graph(graph, members, users, requested)


def _resolve_aliases(aliases: dict[Any, Any]) -> dict[Any, Any]:
    """Resolve chains of aliases: map each alias to its final target."""
    found = {}
    for key, target in aliases.items():
        while target in aliases:
            target = aliases[target]
        found[key] = target
    return found


def _topological_order(graph: TaskGraph) -> list[Any]:
    """Return the keys in topological order."""
    waiting = {key: len([d for d in node.dependencies if d in graph]) for key, node in graph.items()}
    users: dict[Any, list[Any]] = defaultdict(list)
    for key, node in graph.items():
        for needed in node.dependencies:
            users[needed].append(key)
    order = [key for key, n in waiting.items() if not n]
    for key in order:
        for user in users[key]:
            waiting[user] -= 1
            if not waiting[user]:
                order.append(user)
    return order


def _block_positions(
    graph: TaskGraph, order: list[Any], users: dict[Any, list[Any]], known_as: dict[Any, Any]
) -> dict[Any, Hashable]:
    """Return each task's block position: the block indices in its key, or in the key of the array that it was fused into.

    Zeros are omitted, because they belong to axes without chunks. A task used at many positions has a position of its own.
    """
    position: dict[Any, Hashable] = {}
    for key in reversed(order):
        name = known_as.get(key, key)
        others = {position[user] for user in users[key]}
        if type(name) is tuple and not isinstance(graph[key], DataNode):
            own: Hashable = tuple([n for n in name[1:] if n])
            others.discard(own)
            position[key] = ("", key) if len(others) > 1 else own
        else:
            position[key] = others.pop() if len(others) == 1 and not isinstance(graph[key], DataNode) else ("", key)
    return position


def _stages(graph: TaskGraph, order: list[Any], users: Any, position: dict[Any, Hashable]) -> dict[Any, int]:
    """Return each task's stage: as early as its dependencies allow; tasks with few dependencies, as late as users allow."""
    stage: dict[Any, int] = {}
    for key in order:
        needs = graph[key].dependencies
        stage[key] = max([stage[d] + (position[d] != position[key]) for d in needs if d in stage], default=0)
    for key in reversed(order):
        if users[key]:
            stage[key] = min([stage[user] - (position[user] != position[key]) for user in users[key]])
    return stage


def _group_graph(graph: TaskGraph, members: dict[Hashable, list[Any]], users: Any, requested: set[Any]) -> TaskGraph:
    """Return the graph of groups and of the requested results, under new keys."""
    home = {key: group for group, keys in members.items() for key in keys}
    outputs = {
        group: [key for key in keys if key in requested or any(home[user] != group for user in users[key])]
        for group, keys in members.items()
    }
    groups = [group for group, found in outputs.items() if found]
    token = "group-" + tokenize(sorted(map(str, graph)))
    names: dict[Hashable, Any] = {group: (token, i) for i, group in enumerate(groups)}
    for key in {
        needed for node in graph.values() for needed in node.dependencies
    } - graph.keys():  # a result on a cluster
        home[key] = names[key] = key
        outputs[key] = [key]
    condensed: TaskGraph = {}
    for group in groups:
        keys = members[group]
        needed = dict.fromkeys([home[d] for key in keys for d in graph[key].dependencies if home[d] != group])
        sources = [(len(outputs[other]) > 1, outputs[other]) for other in needed]
        run = TaskGroup([graph[key] for key in keys], outputs[group], sources)
        condensed[names[group]] = Task(names[group], run, *[TaskRef(names[other]) for other in needed])
        for i, key in enumerate(outputs[group]):
            if key in requested:
                found = [i] if len(outputs[group]) > 1 else []
                condensed[result_key(key)] = Task(result_key(key), _item, TaskRef(names[group]), *found)
    return condensed


def result_key(key: Any) -> Any:
    """Return the key of a requested result, which differs from the key of the original task."""
    return ("computed-" + key[0], *key[1:])


def _item(found: Any, i: int | None = None) -> Any:
    return found if i is None else found[i]
