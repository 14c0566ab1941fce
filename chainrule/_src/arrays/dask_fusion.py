"""One task for a chunk: what a gradient does with a block of the data, between reading it and adding up, done at once.

Dask fuses chains. A gradient is none: it uses what it read, and much of what it computed, twice. As tasks of their own
these steps keep the block in memory, move it between workers, and cost the scheduler more than the arithmetic takes. Here
tasks at the same place among the blocks become one, which hands out what others need.

A task's group is its place and its stage: how often the way to it has changed places. Between groups stages only rise, so
that groups can't wait for each other.
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
except ImportError:  # another version of Dask: its own fusion has to do
    Task = None  # type: ignore[assignment, misc, unused-ignore]

TaskGraph = dict[Any, Any]


class TaskGroup:
    """Tasks that are run one after the other, in one task.

    Args:
        nodes: in the order to run them.
        outputs: keys of the results that are handed out.
        sources: for each argument, the keys of the results that it holds, as a tuple; or one key.
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


def grouped(arrays: list[Any]) -> list[Any]:
    """Dask arrays of one small graph, with the values of the given ones."""
    keys = [x.__dask_keys__() for x in arrays]
    graph = dict(optimize(HighLevelGraph.merge(*[x.dask for x in arrays]), keys))
    if Task is None or not all(isinstance(node, GraphNode) for node in graph.values()):
        return arrays
    found = _grouped(graph, set(flatten(keys)))
    return [da.Array(found, result_key((x.name,))[0], x.chunks, meta=x._meta) for x in arrays]


def _grouped(graph: TaskGraph, wanted: set[Any]) -> TaskGraph:
    aliases = {key: node.target for key, node in graph.items() if isinstance(node, Alias) and key not in wanted}
    aliases = _resolved({key: target for key, target in aliases.items() if target in graph})
    if aliases:
        graph = {key: node.substitute(aliases) for key, node in graph.items() if key not in aliases}
    order = _sorted(graph)
    users: dict[Any, list[Any]] = defaultdict(list)
    for key in order:
        for needed in graph[key].dependencies:
            users[needed].append(key)
    place = _places(graph, order, users, {target: key for key, target in aliases.items()})
    stage = _stages(graph, order, users, place)
    members: dict[Hashable, list[Any]] = defaultdict(list)
    for key in order:
        members[place[key], stage[key]].append(key)
    return _condensed(graph, members, users, wanted)


def _resolved(aliases: dict[Any, Any]) -> dict[Any, Any]:
    """Each alias with what it stands for in the end."""
    found = {}
    for key, target in aliases.items():
        while target in aliases:
            target = aliases[target]
        found[key] = target
    return found


def _sorted(graph: TaskGraph) -> list[Any]:
    """Return the keys, each after those that it needs."""
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


def _places(
    graph: TaskGraph, order: list[Any], users: dict[Any, list[Any]], known_as: dict[Any, Any]
) -> dict[Any, Hashable]:
    """Where each task's block lies: the numbers in its key, or in that of the array which it was put into.

    Zeros are left out, which are those of axes that are not cut. What many places use has a place of its own.
    """
    place: dict[Any, Hashable] = {}
    for key in reversed(order):
        name = known_as.get(key, key)
        others = {place[user] for user in users[key]}
        if type(name) is tuple and not isinstance(graph[key], DataNode):
            own: Hashable = tuple([n for n in name[1:] if n])
            others.discard(own)
            place[key] = ("", key) if len(others) > 1 else own
        else:
            place[key] = others.pop() if len(others) == 1 and not isinstance(graph[key], DataNode) else ("", key)
    return place


def _stages(graph: TaskGraph, order: list[Any], users: Any, place: dict[Any, Hashable]) -> dict[Any, int]:
    """As early as what it needs allows; then, for what needs little, as late as its users allow."""
    stage: dict[Any, int] = {}
    for key in order:
        needs = graph[key].dependencies
        stage[key] = max([stage[d] + (place[d] != place[key]) for d in needs if d in stage], default=0)
    for key in reversed(order):
        if users[key]:
            stage[key] = min([stage[user] - (place[user] != place[key]) for user in users[key]])
    return stage


def _condensed(graph: TaskGraph, members: dict[Hashable, list[Any]], users: Any, wanted: set[Any]) -> TaskGraph:
    """Return the graph of groups, and of the results that were asked for, under keys of their own."""
    home = {key: group for group, keys in members.items() for key in keys}
    outputs = {
        group: [key for key in keys if key in wanted or any(home[user] != group for user in users[key])]
        for group, keys in members.items()
    }
    groups = [group for group, found in outputs.items() if found]
    token = "group-" + tokenize(sorted(map(str, graph)))
    names: dict[Hashable, Any] = {group: (token, i) for i, group in enumerate(groups)}
    for key in {
        needed for node in graph.values() for needed in node.dependencies
    } - graph.keys():  # it lies on a cluster
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
            if key in wanted:
                found = [i] if len(outputs[group]) > 1 else []
                condensed[result_key(key)] = Task(result_key(key), _item, TaskRef(names[group]), *found)
    return condensed


def result_key(key: Any) -> Any:
    """Return the key of a result that was asked for, which must not mean another task than it did."""
    return ("computed-" + key[0], *key[1:])


def _item(found: Any, i: int | None = None) -> Any:
    return found if i is None else found[i]
