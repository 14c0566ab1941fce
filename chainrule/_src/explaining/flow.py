"""Convert an explanation's backward pass to linear maps, so that its HTML page can run it again with another gradient.

``page`` calls ``flow_of`` with ``Explanation.to_dict()``. The local Jacobian of every arrow becomes a list of its entries. The pass
runs from the given gradient and from every unit gradient. A value whose result differs from the record (because of a hook) cannot
be edited on the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.tables import flat_numbers, is_real

ENTRIES = 60_000  # most entries of all embedded Jacobians together
WHOLE = 4_096  # most entries of the Jacobian of the whole pass
UNITS = 256  # most output elements for which that Jacobian is computed


@dataclass(slots=True)
class LocalMap:
    """The entries of one Jacobian: output element, input element, value; ``shape`` is (out, in)."""

    outputs: np.ndarray
    inputs: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def pull(self, g: np.ndarray) -> np.ndarray:
        """Return gᵀJ, for g of `out` elements or a stack (n, out) of them."""
        result = np.zeros((*g.shape[:-1], self.shape[1]))
        with np.errstate(all="ignore"):
            np.add.at(result.T, self.inputs, (g[..., self.outputs] * self.values).T)
        return result

    def dense(self) -> np.ndarray:
        whole = np.zeros(self.shape)
        whole[self.outputs, self.inputs] = self.values
        return whole

    def to_json(self) -> JSONObject:
        values = [item if np.isfinite(item) else str(item) for item in self.values.tolist()]
        return {"o": self.outputs.tolist(), "i": self.inputs.tolist(), "v": values, "n": list(self.shape)}

    @classmethod
    def of(cls, dense: np.ndarray) -> LocalMap:
        outputs, inputs = np.nonzero(dense)
        return cls(outputs, inputs, dense[outputs, inputs], (dense.shape[0], dense.shape[1]))


@dataclass(slots=True)
class Flow:
    """The parts of a pass that can run again: for each (step, arrow) a map, or the reason why it has none."""

    maps: dict[tuple[int, int], LocalMap] = field(default_factory=dict)
    why_not: dict[tuple[int, int], str] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)  # value id -> why its cotangent can't be recomputed
    totals: dict[tuple[str, str], LocalMap] = field(default_factory=dict)  # (output, wrt) -> its Jacobian
    editable: bool = False
    off: str = ""


def flow_of(plan: JSONObject, *, detailed: int) -> Flow:
    """Return the maps of a plan (`Explanation.to_dict()`) of at most `detailed` steps."""
    flow = Flow()
    if len(plan["steps"]) > detailed:
        flow.off = f"editing is off: the pass has {len(plan['steps'])} steps, and a page recomputes at most {detailed}"
        return flow
    for name, seed in plan["seed"].items():
        if numbers_of_array(seed) is None:
            why = "too large to embed" if seed["truncated"] else "complex"
            flow.off = f"editing is off: the gradient of {plan['values'][name]['name']} is {why}"
            return flow
    remaining_entries = ENTRIES
    for at, step in enumerate(plan["steps"]):
        for j, arrow in enumerate(step["arrows"]):
            found = _local(step, arrow, remaining_entries)
            if isinstance(found, LocalMap):
                remaining_entries -= len(found.values)
                flow.maps[at, j] = found
            else:
                flow.why_not[at, j] = found
    _run(plan, flow)
    flow.editable = any(value not in flow.stale for value in plan["gradients"]) and bool(plan["seed"])
    if not flow.editable:
        flow.off = f"editing is off: {next(iter(flow.stale.values()), 'no gradient depends on the output')}"
    return flow


def numbers_of_array(array: JSONObject) -> np.ndarray | None:
    """Return an array's numbers; None if they are truncated or complex."""
    numbers = flat_numbers(array["data"])
    return None if array["truncated"] or not is_real(numbers) else np.array(numbers, dtype=float)


def _local(step: JSONObject, arrow: JSONObject, remaining_entries: int) -> LocalMap | str:
    """Return the map of an arrow if it reproduces the recorded numbers, else the reason why there is none."""
    upstream, downstream = numbers_of_array(step["upstream"]), numbers_of_array(arrow["downstream"])
    if len(step["outputs"]) > 1:
        return "its operation has several outputs"
    if arrow["downstream"]["truncated"]:
        return "its cotangent is too large to embed"
    if arrow["jacobian"] is None:
        return f"its Jacobian has {arrow['jacobian_size']:,} numbers and is not embedded"
    numbers = flat_numbers(arrow["jacobian"])
    if upstream is None or downstream is None or not is_real(numbers):
        return "its numbers are complex or too many"
    found = LocalMap.of(np.array(numbers, dtype=float).reshape(upstream.size, downstream.size))
    if len(found.values) > remaining_entries:
        return "the Jacobians of this pass are too large to embed all of them"
    if not numbers_agree(found.pull(upstream), downstream):
        return "its result differs from the Jacobian's product (a hook changed it, or it is rounded)"
    return found


def numbers_agree(ours: np.ndarray, given: np.ndarray) -> bool:
    """Return whether numbers agree up to the precision of float32; ignore pairs with a number that is not finite."""
    finite = np.isfinite(ours) & np.isfinite(given)
    scale = max(np.max(np.abs(given), initial=0, where=finite), 1e-30)
    return bool(np.all(np.abs(ours[finite] - given[finite]) <= 1e-4 * scale))


def _run(plan: JSONObject, flow: Flow) -> None:
    """Pull stacks of gradients through the maps: first the given gradient, then the unit gradients of all outputs."""
    seeds = {key: flat_numbers(seed["data"]) for key, seed in plan["seed"].items()}
    sizes = {key: len(seed) for key, seed in seeds.items()}
    units = sum(sizes.values()) if max(sizes.values(), default=0) <= UNITS else 0
    stacks: dict[str, np.ndarray] = {}
    rows: dict[str, slice] = {}
    first = 1
    for key, seed in seeds.items():
        stacks[key] = np.zeros((1 + units, sizes[key]))
        stacks[key][0] = seed
        rows[key] = slice(first, first + sizes[key] if units else first)
        stacks[key][rows[key]] = np.eye(sizes[key]) if units else 0
        first = rows[key].stop

    def compare(key: str, array: dict[str, object]) -> None:
        recorded = numbers_of_array(array)
        if (
            key not in flow.stale
            and recorded is not None
            and key in stacks
            and not numbers_agree(stacks[key][0], recorded)
        ):
            flow.stale[key] = f"a hook changed the gradient of {plan['values'][key]['name']}"

    for at, step in enumerate(plan["steps"]):
        compare(step["output"], step["upstream"])
        before = next((flow.stale[key] for key in step["outputs"] if key in flow.stale), None)
        for j, arrow in enumerate(step["arrows"]):
            here = flow.why_not.get((at, j))
            why = before or (
                here and f"in step {step['index']}, {step['node']} of {plan['values'][step['output']]['name']}, {here}"
            )
            if why is not None:
                flow.stale.setdefault(arrow["input"], why)
            elif step["output"] in stacks:
                part = flow.maps[at, j].pull(stacks[step["output"]])
                stacks[arrow["input"]] = stacks.get(arrow["input"], 0) + part
    for key, gradient in plan["gradients"].items():
        compare(key, gradient)
        for output in plan["outputs"]:
            if units and key in stacks and key not in flow.stale and 0 < sizes[output] * stacks[key].shape[1] <= WHOLE:
                flow.totals[output, key] = LocalMap.of(stacks[key][rows[output]])


def keys_of_terms(step: JSONObject, plan: JSONObject) -> Iterator[str]:
    """Yield the page's key of each term of a step's upstream sum: the given gradient, or an earlier arrow."""
    by_index = {other["index"]: other for other in plan["steps"]}
    for term in step["terms"]:
        source = by_index.get(term["from"])
        if source is None:
            yield f"s.{step['output']}"
            continue
        found = [
            f"a{source['index']}.{j}"
            for j, arrow in enumerate(source["arrows"])
            if arrow["input"] == step["output"] and term["operand"] in (arrow["operand"], None)
        ]
        yield found[0] if found else ""
