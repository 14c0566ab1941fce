"""An explanation's backward pass as linear maps, so that a page can run it again with another gradient.

Every arrow's local Jacobian becomes a list of its entries. The pass is run once here from the gradient that was given; an
arrow whose numbers do not come out as recorded (a hook changed them) is not offered for editing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainrule.explaining.tables import flat, is_real

ENTRIES = 60_000  # of all embedded Jacobians together
WHOLE = 4_096  # numbers of the Jacobian of the whole pass
UNITS = 256  # output elements for which that Jacobian is made


@dataclass(slots=True)
class Map:
    """The entries of one Jacobian: output element, input element, value; (out, in) elements in all."""

    outputs: np.ndarray
    inputs: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def pull(self, g: np.ndarray) -> np.ndarray:
        """gᵀJ, for g of `out` elements or a stack (n, out) of them."""
        result = np.zeros((*g.shape[:-1], self.shape[1]))
        with np.errstate(all="ignore"):
            np.add.at(result.T, self.inputs, (g[..., self.outputs] * self.values).T)
        return result

    def dense(self) -> np.ndarray:
        whole = np.zeros(self.shape)
        whole[self.outputs, self.inputs] = self.values
        return whole

    def to_json(self) -> dict[str, Any]:
        return {"o": self.outputs.tolist(), "i": self.inputs.tolist(), "v": _plain(self.values), "n": list(self.shape)}

    @classmethod
    def of(cls, dense: np.ndarray) -> Map:
        outputs, inputs = np.nonzero(dense)
        return cls(outputs, inputs, dense[outputs, inputs], (dense.shape[0], dense.shape[1]))


@dataclass(slots=True)
class Flow:
    """What of a pass can be run again: a map or a reason for each (step, arrow)."""

    maps: dict[tuple[int, int], Map] = field(default_factory=dict)
    why_not: dict[tuple[int, int], str] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)  # value id -> why its cotangent can't be recomputed
    totals: dict[tuple[str, str], Map] = field(default_factory=dict)  # (output, wrt) -> its Jacobian
    editable: bool = False
    off: str = ""


def flow_of(plan: dict[str, Any], *, detailed: int) -> Flow:
    """The maps of a plan (`Explanation.to_dict()`) of at most `detailed` steps."""
    flow = Flow()
    if len(plan["steps"]) > detailed:
        flow.off = f"editing is off: the pass has {len(plan['steps'])} steps, and a page recomputes at most {detailed}"
        return flow
    for name, seed in plan["seed"].items():
        if seed["truncated"] or not is_real(flat(seed["data"])):
            why = "too large to embed" if seed["truncated"] else "complex"
            flow.off = f"editing is off: the gradient of {plan['values'][name]['name']} is {why}"
            return flow
    room = ENTRIES
    for at, step in enumerate(plan["steps"]):
        for j, arrow in enumerate(step["arrows"]):
            found = _local(arrow) if len(step.get("outputs", [0])) == 1 else "its operation has several outputs"
            if isinstance(found, Map) and len(found.values) > room:
                found = "the Jacobians of this pass are too large to embed all of them"
            if isinstance(found, Map):
                room -= len(found.values)
                flow.maps[at, j] = found
            else:
                flow.why_not[at, j] = found
    _replay(plan, flow)
    _mark_hooked(plan, flow)
    _mark_stale(plan, flow)
    _whole(plan, flow)
    flow.editable = any(value not in flow.stale for value in plan["gradients"]) and bool(plan["seed"])
    if not flow.editable:
        reasons = [*dict.fromkeys([*flow.why_not.values(), *flow.stale.values()]), "no number depends on it"]
        flow.off = f"editing is off: {reasons[0]}"
    return flow


def _local(arrow: dict[str, Any]) -> Map | str:
    rank = len(arrow["jacobian_shape"]) - len(arrow["downstream"]["shape"])
    size_in = int(np.prod(arrow["downstream"]["shape"], dtype=int))
    size_out = int(np.prod(arrow["jacobian_shape"][:rank], dtype=int))
    if arrow["downstream"]["truncated"]:
        return "its cotangent is too large to embed"
    diagonal = arrow.get("linear")
    if diagonal is not None:
        values = np.array(flat(diagonal["values"]), dtype=float)
        every = np.arange(size_out)
        return Map(every, every, values, (size_out, size_in))
    if arrow["jacobian"] is None:
        return f"its Jacobian has {arrow['jacobian_size']:,} numbers and is not embedded"
    numbers = flat(arrow["jacobian"])
    if not is_real(numbers):
        return "its numbers are complex"
    return Map.of(np.array(numbers, dtype=float).reshape(size_out, size_in))


def _replay(plan: dict[str, Any], flow: Flow) -> None:
    """Drops the maps that do not give the recorded numbers."""
    for at, step in enumerate(plan["steps"]):
        upstream = flat(step["upstream"]["data"])
        whole = not step["upstream"]["truncated"] and is_real(upstream)
        for j, arrow in enumerate(step["arrows"]):
            found = flow.maps.get((at, j))
            if found is None:
                continue
            given = flat(arrow["downstream"]["data"])
            if not whole or not is_real(given):
                _drop(flow, at, j, "its numbers are complex or too many")
            elif not _close(found.pull(np.array(upstream)), np.array(given)):
                _drop(flow, at, j, "its result is not the Jacobian's alone (a hook changed it, or it rounds)")


def _drop(flow: Flow, at: int, j: int, why: str) -> None:
    del flow.maps[at, j]
    flow.why_not[at, j] = why


def _close(ours: np.ndarray, given: np.ndarray) -> bool:
    finite = np.isfinite(ours) & np.isfinite(given)
    scale = max(np.max(np.abs(given), initial=0, where=finite), 1e-30)
    return bool(np.all(np.abs(ours[finite] - given[finite]) <= 1e-4 * scale))


def _mark_hooked(plan: dict[str, Any], flow: Flow) -> None:
    """Cotangents that are not the sum of what flowed into them."""
    sums: dict[str, Any] = {}

    def add(key: str, array: dict[str, Any]) -> None:
        numbers = flat(array["data"])
        part = None if array["truncated"] or not is_real(numbers) else np.array(numbers)
        sums[key] = None if part is None or (key in sums and sums[key] is None) else sums.get(key, 0) + part

    def compare(key: str, array: dict[str, Any]) -> None:
        whole = sums.get(key)
        if whole is not None and not array["truncated"] and not _close(whole, np.array(flat(array["data"]))):
            flow.stale[key] = f"a hook changed the gradient of {plan['values'][key]['name']}"

    for key, seed in plan["seed"].items():
        add(key, seed)
    for step in plan["steps"]:
        compare(step["output"], step["upstream"])
        for arrow in step["arrows"]:
            add(arrow["input"], arrow["downstream"])
    for key, gradient in plan["gradients"].items():
        compare(key, gradient)


def _mark_stale(plan: dict[str, Any], flow: Flow) -> None:
    for at, step in enumerate(plan["steps"]):
        before = next((flow.stale[key] for key in step.get("outputs", [step["output"]]) if key in flow.stale), None)
        for j, arrow in enumerate(step["arrows"]):
            why = before or flow.why_not.get((at, j))
            if why:
                flow.stale.setdefault(arrow["input"], why)


def _whole(plan: dict[str, Any], flow: Flow) -> None:
    """The Jacobian of each output by each gradient: unit cotangents, all at once, through the same maps."""
    values = plan["values"]
    for output in plan["outputs"]:
        size = int(np.prod(values[output]["shape"], dtype=int))
        sizes = {v: int(np.prod(values[v]["shape"], dtype=int)) for v in plan["gradients"] if v not in flow.stale}
        wanted = [v for v, n in sizes.items() if 0 < size * n <= WHOLE]
        if not wanted or size > UNITS:
            continue
        stacks: dict[str, np.ndarray] = {output: np.eye(size)}
        for at, step in enumerate(plan["steps"]):
            if step["output"] in stacks:
                for j, arrow in enumerate(step["arrows"]):
                    part = flow.maps[at, j].pull(stacks[step["output"]]) if (at, j) in flow.maps else None
                    if part is not None:
                        stacks[arrow["input"]] = stacks.get(arrow["input"], 0) + part
        for value in wanted:
            if value in stacks:
                flow.totals[output, value] = Map.of(stacks[value])


def keys_of_terms(step: dict[str, Any], plan: dict[str, Any]) -> Iterator[str]:
    """Where each term of a step's upstream sum is found in the page: the gradient given, or an earlier arrow."""
    by_index = {other["index"]: other for other in plan["steps"]}
    for term in step["terms"]:
        source = by_index.get(term["from"])
        if source is None:
            yield f"s.{step['output']}"
            continue
        at = [
            j
            for j, arrow in enumerate(source["arrows"])
            if arrow["input"] == step["output"] and term["operand"] in (arrow["operand"], None)
        ]
        yield f"a{source['index']}.{at[0]}" if at else ""


def _plain(values: np.ndarray) -> list[Any]:
    """Numbers as JSON can hold them."""
    return [item if np.isfinite(item) else str(item) for item in values.tolist()]
