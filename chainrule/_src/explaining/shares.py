"""HTML of shares of gradients: the table of contributions, and the bar of one share.

``page`` calls ``table_html``, and ``sections`` calls ``share_bar``.
"""

from __future__ import annotations

from chainrule._src.arrays.types import JSONObject
from chainrule._src.explaining.diagnosis.source import SourceLine
from chainrule._src.explaining.exports import one_line
from chainrule._src.explaining.markup import escape, scroll_box

DEFINITION = "share = ⟨part, gradient⟩ / ⟨gradient, gradient⟩, and the shares add up to 1"
_COLUMNS = 24  # most leaves in the table


def part_title(name: str, count: int) -> str:
    """Return a part's name with its count."""
    return one_line(name if count == 1 or name.endswith(" terms") else f"{count:,} × {name}")


def table_html(said: JSONObject, *, style: bool = False) -> str:
    """Return the table of ``Contributions.to_dict()``: a row for each part, a column for each leaf."""
    leaves = ["", *sorted(list(said["norms"])[1:], key=lambda leaf: -(said["norms"][leaf] or 0))[:_COLUMNS]]
    leaves = [leaf for leaf in said["norms"] if leaf in leaves and (leaf or len(said["norms"]) != 2)]
    leaves = leaves[:1] if said["by"] == "module" else leaves
    cells = {(row["leaf"], row["part"]): row for row in said["table"]}
    head = "".join(f"<th scope='col'>{escape(leaf) if leaf else 'all leaves'}</th>" for leaf in leaves)
    norms = "".join(f"<td>{_number(said['norms'][leaf])}</td>" for leaf in leaves)
    titles = [escape(part_title(part["name"], part["count"])) for part in said["parts"]]
    body = "".join(
        f"<tr><th scope='row'><span class='part'>{title}</span>{_place(part['line'], said['by'])}</th>"
        + "".join(_cell(cells.get((leaf, part["name"]))) for leaf in leaves)
        + "</tr>"
        for title, part in zip(titles, said["parts"])
    )
    caption = (
        f"<caption>The gradient of {escape(said['title'])} by {said['by']}: {escape(DEFINITION)}</caption>" * style
    )
    table = (
        f"<table class='shares'>{caption}<thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{body}<tr class='whole-norm'><th scope='row'>norm of the gradient</th>{norms}</tr></tbody></table>"
    )
    return f"<style>{_STYLE}</style>{table}" if style else scroll_box(f"Contributions by {said['by']}", table)


def _place(line: JSONObject | None, by: str) -> str:
    if line is None:
        return ""
    return (
        f" <code>{escape(line['text'])}</code>"
        if by == "line"
        else f" <span class='shape'>{escape(SourceLine(**line))}</span>"
    )


def _cell(row: JSONObject | None) -> str:
    if row is None or row["share"] is None:
        return "<td>–</td>"
    cosine = "–" if row["cosine"] is None else f"{row['cosine']:.2f}"
    return f"<td title='norm {row['norm']:.4g}, cosine {cosine}'>{share_bar(row['share'])}</td>"


def percent_text(share: float) -> str:
    """Format a share."""
    text = f"{share:.1%}"
    return text.lstrip("-") if not float(text[:-1]) else text.replace("-", "−")


def share_bar(share: float | None) -> str:
    """Return a share in percent above a bar of that length."""
    if share is None:
        return "<span class='share'>–</span>"
    kind = "against" if share < 0 else "with"
    return f"<span class='share'>{percent_text(share)}<i class='{kind}' style='width:{min(abs(share), 1) * 100:.1f}%'></i></span>"


def _number(x: float | None) -> str:
    return "–" if x is None else f"{x:.4g}"


_STYLE = (
    "table.shares td,table.shares th{text-align:right}table.shares th[scope=row],table.shares caption{text-align:left}"
    ".share{display:block;min-width:4rem}.share i{display:block;height:3px;background:#3b7dc4}.share i.against{background:#c4512f}"
)
