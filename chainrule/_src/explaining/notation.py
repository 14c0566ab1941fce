"""Print formulas: a printer of expression trees, and three output formats (``Alphabet``).

``print_tree(tree, TEXT)``, ``print_tree(tree, LATEX)`` and ``print_tree(tree, MATHML)`` return a formula as text, LaTeX and MathML.
A name that ends with a bar is the name of a cotangent. ``name_math`` and ``derivative_math`` print names alone.
"""

from __future__ import annotations

import ast
import html
import math
import re
from collections.abc import Sequence

from chainrule._src.explaining.tree import (
    Entry,
    IndexLetters,
    Relation,
    Sigma,
    accepts_arguments,
    call_name,
    free_names,
    of_numpy,
)

BAR = "\u02c9"  # a letter of its own width: combining macrons do not stand over digits in monospaced faces
THIN = "\u2009"
POWERS = str.maketrans("0123456789−⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ")

#: Binding strengths of printed expressions. OPEN ends with a sum over letters, so nothing may follow it without parentheses.
NOT_LAST, OPEN, ADD, MUL, POW, ATOM = range(6)

#: Templates for the parts of formulas, in text, LaTeX and MathML.
_FORMS = {
    "letter": ("{}", "{}", "<mi>{}</mi>"),
    "word": ("{}", r"\mathit{{{}}}", "<mi>{}</mi>"),
    "bar": ("{}", r"\bar{{{}}}", '<mover accent="true">{}<mo stretchy="true">¯</mo></mover>'),
    "overline": ("{}", r"\overline{{{}}}", '<mover accent="true">{}<mo stretchy="true">¯</mo></mover>'),
    "number": ("{}", "{}", "<mn>{}</mn>"),
    "code": ("{}", r"\mathtt{{{}}}", "<mtext>{}</mtext>"),
    "function": ("{}", r"\operatorname{{{}}}", '<mi mathvariant="normal">{}</mi>'),
    "()": ("({})", r"\left({}\right)", '<mrow><mo fence="true">(</mo>{}<mo fence="true">)</mo></mrow>'),
    "[]": ("[{}]", r"\left[{}\right]", '<mrow><mo fence="true">[</mo>{}<mo fence="true">]</mo></mrow>'),
    "||": ("|{}|", r"\left|{}\right|", '<mrow><mo fence="true">|</mo>{}<mo fence="true">|</mo></mrow>'),
    "fraction": ("{} / {}", r"\frac{{{}}}{{{}}}", "<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>"),
    "power": ("{}^{}", "{}^{{{}}}", "<msup><mrow>{}</mrow><mrow>{}</mrow></msup>"),
    "below": ("{}_{}", "{}_{{{}}}", "<msub><mrow>{}</mrow><mrow>{}</mrow></msub>"),
    "root": ("√({})", r"\sqrt{{{}}}", "<msqrt><mrow>{}</mrow></msqrt>"),
    "sum": ("Σ {}", r"\sum {}", "<mo>∑</mo>{}"),
    "sum over": ("Σ_{} {}", r"\sum_{{{}}} {}", "<munder><mo>∑</mo><mrow>{}</mrow></munder>{}"),
    "axis": ("axis {}", r"\text{{axis }}{}", "<mtext>axis\u00a0</mtext>{}"),
    "case": (
        "{} if {} else ", r"{} & \text{{if }} {} \\ ",
        "<mtr><mtd><mrow>{}</mrow></mtd><mtd><mrow><mtext>if\u00a0</mtext>{}</mrow></mtd></mtr>",
    ),
    "cases": (
        "({}{})", r"\begin{{cases}} {}{} & \text{{else}} \end{{cases}}",
        '<mrow><mo fence="true">{{</mo><mtable columnalign="left left">{}'
        "<mtr><mtd><mrow>{}</mrow></mtd><mtd><mtext>else</mtext></mtd></mtr></mtable></mrow>",
    ),
    "at": ("{} at {}", r"\left. {} \right|_{{{}}}", '<msub><mrow>{}<mo fence="true">|</mo></mrow><mrow>{}</mrow></msub>'),
    "derivative": (
        "∂{}/∂{}", r"\frac{{\partial {}}}{{\partial {}}}",
        "<mfrac><mrow><mi>∂</mi>{}</mrow><mrow><mi>∂</mi>{}</mrow></mfrac>",
    ),
    "formula": ("{}", "{}", '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow>{}</mrow></math>'),
}  # fmt: skip
_SIGNS = {
    "−": "-", "·": r"\cdot", "⊙": r"\odot", "≥": r"\ge", "≤": r"\le", "≠": r"\ne", "∧": r"\land", "∨": r"\lor",
    "¬": r"\lnot ", "+=": r"\mathrel{+}=", THIN: r"\,", "π": r"\pi", "∞": r"\infty", "nan": r"\mathrm{nan}",
    "δ": r"\delta", "⊤": r"\top", "→": r"\to ",
}  # fmt: skip
_NAMED = {"exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "ln", "min", "max"}  # functions with LaTeX commands
_CONSTANTS = {"pi": "π", "inf": "∞", "nan": "nan", "e": "e"}
_FUNCTIONS = {"log": "ln", "minimum": "min", "maximum": "max", "absolute": "abs"}
_REDUCTIONS = {"mean", "max", "var"}
_METHODS = {"sum", "reshape", "astype", "conj"} | _REDUCTIONS
_RELATIONS: dict[type, str] = {ast.Gt: ">", ast.GtE: "≥", ast.Lt: "<", ast.LtE: "≤", ast.Eq: "=", ast.NotEq: "≠"}


def bar(name: str) -> str:
    """Return the name of a value's cotangent: ``X̄``."""
    return name + BAR


def index_brackets(index: IndexLetters) -> str:
    return f"[{','.join(map(str, index))}]" if index else ""


class Alphabet:
    """An output format of formulas.

    Args:
        column: 0 for text, 1 for LaTeX, 2 for MathML.
        product: the separator between factors in text.
    """

    def __init__(self, column: int, product: str = "·") -> None:
        self.column = column
        self.product = product
        self.stacked = column > 0
        self.minus = ("−", "-", "<mo>−</mo>")[column]

    def put(self, form: str, *parts: str) -> str:
        return _FORMS[form][self.column].format(*parts)

    def quoted(self, form: str, text: str) -> str:
        """Escape literal text, and put it into one of the forms."""
        if self.column == 1:
            text = re.sub(r"([_%$#&{}])", r"\\\1", text)
        if self.column == 2:
            text = html.escape(text).replace(" ", "\u00a0")  # spaces at the ends would be lost
        return self.put(form, text)

    def name(self, name: str) -> str:
        """Return a variable: digits at its end are a subscript, and the bar of a cotangent is over the rest."""
        if not self.stacked:
            return name
        stem = name.removesuffix(BAR)
        found = re.fullmatch(r"([^\W\d_]+)(\d+)", stem)
        base, digits = found.groups() if found else (stem, "")
        if self.column == 1 and base in _SIGNS:
            text = _SIGNS[base]
        else:
            text = self.quoted("letter" if len(base) == 1 and base.isalpha() else "word", base)
        if name.endswith(BAR):
            text = self.put("bar" if len(base) == 1 else "overline", text)
        return self.put("below", text, self.put("number", digits)) if digits else text

    def function(self, name: str) -> str:
        return f"\\{name}" if self.column == 1 and name in _NAMED else self.quoted("function", name)

    def indexed(self, name: str, index: IndexLetters) -> str:
        if not index or not self.stacked:
            return self.name(name) + index_brackets(index)
        below = "".join(self.put("number" if isinstance(i, int) else "letter", str(i)) for i in index)
        if self.column == 2:
            return self.put("below", self.name(name), below)
        base = self.name(name)
        base = f"{{{base}}}" if "_" in base else base
        return f"{base}_{below}" if len(below) == 1 else self.put("below", base, below)

    def sign(self, sign: str) -> str:
        if self.column == 2:
            return f"<mo>{html.escape(sign)}</mo>"
        return _SIGNS.get(sign, sign) if self.column == 1 else sign

    def binary(self, left: str, sign: str, right: str) -> str:
        if self.column == 0:
            return left + (f" {sign} " if sign not in ("·", "⊙", THIN, "") else self.product) + right
        if self.column == 1:
            return " ".join(part for part in (left, self.sign(sign), right) if part)
        return left + ('<mspace width="0.167em"/>' if sign == THIN else self.sign(sign or "\u2062")) + right

    def listed(self, parts: Sequence[str], space: str = " ") -> str:
        return ("," + space, "," + space, "<mo>,</mo>")[self.column].join(parts)

    def power(self, base: str, exponent: str) -> str:
        if not self.stacked and re.fullmatch(r"−?\d+|⊤", exponent):
            return base + exponent.translate(POWERS)
        return self.put("power", base, exponent)

    def sigma(self, below: Sequence[str], body: str) -> str:
        letters = self.listed([self.quoted("letter", c) for c in below], "")
        if self.column == 1:
            letters = letters.replace("≥", r" \ge ")
        return self.put("sum over", letters if self.stacked or len(letters) == 1 else f"{{{letters}}}", body)


TEXT, NUMBERS, LATEX, MATHML = Alphabet(0), Alphabet(0, " · "), Alphabet(1), Alphabet(2)


class Printer:
    """Prints a tree.

    Args:
        to: the output format.
        scalars: the names of scalars; None if everything is a scalar, as in formulas of single elements.
    """

    def __init__(self, to: Alphabet, scalars: frozenset[str] | None = None) -> None:
        self.to = to
        self.scalars = scalars

    def __call__(self, node: ast.expr, needed: int = NOT_LAST) -> str:
        """Return the text of a part, in parentheses if it binds less tightly than ``needed``."""
        text, level = self._read(node)
        return text if level >= needed else self.to.put("()", text)

    def _last(self, node: ast.expr, needed: int) -> tuple[str, bool]:
        """Return the text of a last part, and whether it is open. Put it in parentheses if it begins with a minus."""
        text, level = self._read(node)
        if (level < needed and level != OPEN) or text.startswith(self.to.minus):
            return self.to.put("()", text), False
        return text, level == OPEN

    def _read(self, node: ast.expr) -> tuple[str, int]:
        reader = getattr(self, "_" + type(node).__name__.lower(), None)
        if reader is None:
            return self.to.quoted("code", ast.unparse(node)), ATOM
        found: tuple[str, int] = reader(node)
        return found

    # -- names and numbers

    def _entry(self, node: Entry) -> tuple[str, int]:
        return self.to.indexed(node.name, node.index), ATOM

    def _name(self, node: ast.Name) -> tuple[str, int]:
        return self.to.name(node.id), ATOM

    def _constant(self, node: ast.Constant) -> tuple[str, int]:
        x, to = node.value, self.to
        if isinstance(x, complex):
            text = f"({x.real:.4g}{x.imag:+.4g}j)" if x.real else f"{x.imag:.4g}j"
            return (to.name("i") if to.stacked and x == 1j else to.put("number", text)), ATOM
        if not isinstance(x, (bool, int, float)):
            return to.quoted("code", "…" if x is Ellipsis else repr(x)), ATOM
        if not math.isfinite(x):
            return to.name(_CONSTANTS[str(x)]), ATOM
        text = str(int(x)) if isinstance(x, int) else f"{x:.6g}" if len(repr(x)) > 10 else repr(x).removesuffix(".0")
        digits, _, exponent = text.partition("e")
        if not exponent or not to.stacked:
            return to.put("number", text), ATOM
        power = to.power(to.put("number", "10"), to.put("number", str(int(exponent))))
        return to.binary(to.put("number", digits), "·", power), MUL

    def _list(self, node: ast.List | ast.Tuple) -> tuple[str, int]:
        if free_names(node) <= {"np", "slice"}:
            return self.to.quoted("code", ast.unparse(node)), ATOM
        return self.to.put("[]", self.to.listed([self(part) for part in node.elts])), ATOM

    _tuple = _list

    def _attribute(self, node: ast.Attribute) -> tuple[str, int]:
        if of_numpy(node):
            known = _CONSTANTS.get(node.attr)
            return self.to.name(known) if known else self.to.quoted("code", node.attr), ATOM
        if node.attr in ("mT", "T"):
            if self.to.stacked and isinstance(node.value, ast.Call) and call_name(node.value) == "conj":
                return self._raised(node.value.args[0], self.to.name("H"))
            return self._raised(node.value, self.to.name("⊤"))
        if node.attr == "size":
            return self.to.put("||", self(node.value)), ATOM
        return self.to.function(node.attr) + self(node.value), ATOM

    # -- operators

    def _unaryop(self, node: ast.UnaryOp) -> tuple[str, int]:
        if not isinstance(node.op, ast.USub):
            return self._relation(node)
        text, is_open = self._last(node.operand, MUL)
        return self.to.minus + text, NOT_LAST if is_open else MUL

    def _binop(self, node: ast.BinOp) -> tuple[str, int]:
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._relation(node)
        if isinstance(node.op, ast.Pow):
            exponent, level = self._read(node.right)
            plain = self.to.stacked or level == ATOM or re.fullmatch(r"−?\d+", exponent)
            return self._raised(node.left, exponent if plain else self.to.put("()", exponent))
        if isinstance(node.op, ast.Div):
            if self.to.stacked:
                return self.to.put("fraction", self(node.left), self(node.right)), MUL
            return self.to.put("fraction", self._first(node.left), self._last(node.right, POW)[0]), MUL
        return self._sum(node) if isinstance(node.op, (ast.Add, ast.Sub)) else self._product(node)

    def _raised(self, base: ast.expr, exponent: str) -> tuple[str, int]:
        return self.to.power(self(base, ATOM), exponent), POW

    def _first(self, node: ast.expr) -> str:
        """Return the text of a first factor or dividend; in text, put a quotient in parentheses."""
        divided = not self.to.stacked and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        return self(node, POW if divided else MUL)

    def _sum(self, node: ast.BinOp) -> tuple[str, int]:
        sign = "+" if isinstance(node.op, ast.Add) else "−"
        right, level = self._read(node.right)
        if level < (ADD if sign == "+" else MUL) and level != OPEN:
            right, level = self.to.put("()", right), ATOM
        if right.startswith(self.to.minus):
            minus = sign == "+" and level >= MUL
            sign, right = "−", right.removeprefix(self.to.minus) if minus else self.to.put("()", right)
        return self.to.binary(self(node.left, ADD), sign, right), NOT_LAST if level == OPEN else ADD

    def _product(self, node: ast.BinOp) -> tuple[str, int]:
        matrices = isinstance(node.op, ast.MatMult)
        single = self._scalar(node.left) or self._scalar(node.right)
        elementwise = not matrices and not single

        def mixed(part: ast.expr) -> bool:
            """Return whether an elementwise product is a factor of a matrix product, or vice versa."""
            if not isinstance(part, ast.BinOp) or self.scalars is None:
                return False
            if matrices and isinstance(part.op, ast.Mult):
                return not self._scalar(part.left) and not self._scalar(part.right)
            return elementwise and isinstance(part.op, ast.MatMult)

        left = self(node.left, POW) if mixed(node.left) else self._first(node.left)
        right, is_open = self._last(node.right, POW if matrices or mixed(node.right) else MUL)
        if elementwise:
            sign = "⊙"
        elif right[:1].isdigit() or right.startswith("<mn>") or _is_negative(node.right):
            sign = "·"
        else:
            sign = "" if self.scalars is None else THIN
        return self.to.binary(left, sign, right), OPEN if is_open else MUL

    def _scalar(self, node: ast.expr) -> bool:
        """Return whether a factor is a scalar, which needs no sign of elementwise multiplication."""
        if self.scalars is None or isinstance(node, ast.Constant) or of_numpy(node):
            return True
        if isinstance(node, ast.Name):
            return node.id in self.scalars
        if isinstance(node, ast.Attribute):
            return node.attr == "size"
        if isinstance(node, ast.Call):
            return call_name(node) in ("log", "sqrt", "exp") and all(map(self._scalar, node.args))
        return isinstance(node, (ast.BinOp, ast.UnaryOp)) and all(
            self._scalar(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)
        )

    # -- relations, cases, sums

    def _relation(self, node: ast.expr) -> tuple[str, int]:
        return self.to.put("[]", self._condition(node)), ATOM

    _compare = _relation

    def _condition(self, node: ast.expr) -> str:
        """Return a relation without brackets."""
        if isinstance(node, ast.Compare):
            sign = _RELATIONS.get(type(node.ops[0]), "?")
            return self.to.binary(self(node.left), sign, self(node.comparators[0]))
        if isinstance(node, Relation):
            return node.text
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return (self.to.sign("¬") if self.to.stacked else "not ") + self.to.put("()", self._condition(node.operand))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            signs = ("∧", "∨") if self.to.stacked else ("and", "or")
            parts = [self._condition(part) for part in (node.left, node.right)]
            for i, part in enumerate((node.left, node.right)):
                if isinstance(part, ast.BinOp) and type(part.op) is not type(node.op):
                    parts[i] = self.to.put("()", parts[i])
            return self.to.binary(parts[0], signs[isinstance(node.op, ast.BitOr)], parts[1])
        return self(node)

    def _ifexp(self, node: ast.IfExp) -> tuple[str, int]:
        return self._cases(node.test, node.body, node.orelse)

    def _cases(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> tuple[str, int]:
        cases = self.to.put("case", self(yes), self._condition(test))
        while isinstance(no, ast.IfExp) or (isinstance(no, ast.Call) and call_name(no) == "where"):
            test, yes, no = (no.test, no.body, no.orelse) if isinstance(no, ast.IfExp) else no.args
            cases += self.to.put("case", self(yes), self._condition(test))
        return self.to.put("cases", cases, self(no)), ATOM

    def _sigma(self, node: Sigma) -> tuple[str, int]:
        text, level = self._read(node.body)
        enough = level >= MUL or level == OPEN
        return self.to.sigma(node.below, text if enough else self.to.put("()", text)), OPEN

    def _subscript(self, node: ast.Subscript) -> tuple[str, int]:
        text = ast.unparse(node.slice)
        text = text[1:-1] if isinstance(node.slice, ast.Tuple) and text.startswith("(") else text
        base = self(node.value, ATOM)
        base = f"{{{base}}}" if self.to.column == 1 else base
        return self.to.put("below", base, self.to.quoted("code", f"[{text}]")), ATOM

    # -- calls

    def _call(self, node: ast.Call) -> tuple[str, int]:
        if isinstance(node.func, ast.Lambda):
            bound = zip(node.func.args.args, node.args)
            where = [self.to.binary(self.to.name(a.arg), "=", self(x)) for a, x in bound]
            return self.to.put("at", self(node.func.body), self.to.listed(where)), ATOM
        name, arguments = call_name(node), list(node.args)
        if isinstance(node.func, ast.Attribute) and not of_numpy(node.func) and name.rpartition(".")[2] in _METHODS:
            name, arguments = node.func.attr, [node.func.value, *arguments]
        keywords = {k.arg or "": k.value for k in node.keywords if k.arg != "keepdims"}
        special = getattr(self, "_np_" + name, None)
        if accepts_arguments(special, *arguments, **keywords):
            found: tuple[str, int] = special(*arguments, **keywords)
            return found
        function = self.to.function(_FUNCTIONS.get(name, name).rpartition(".")[2])
        axis = arguments.pop() if name in _REDUCTIONS and len(arguments) == 2 else keywords.pop("axis", None)
        named = [self.to.binary(self.to.quoted("code", key), "=", self(x)) for key, x in keywords.items()]
        below = None if axis is None else self._axis(axis)
        if below is not None and not self.to.stacked:
            named, below = [*named, below], None
        return self._applied(function, *map(self, arguments), *named, below=below)

    def _axis(self, axis: ast.expr) -> str:
        return self.to.put("axis", self(axis.elts[0] if isinstance(axis, ast.Tuple) and len(axis.elts) == 1 else axis))

    def _applied(self, function: str, *arguments: str, below: str | None = None) -> tuple[str, int]:
        if below is not None:
            function = self.to.put("below", function, below)
        return function + self.to.put("()", self.to.listed(arguments)), ATOM

    def _np_where(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> tuple[str, int]:
        return self._cases(test, yes, no)

    def _np_sqrt(self, x: ast.expr) -> tuple[str, int]:
        return self.to.put("root", self(x)), ATOM

    def _np_abs(self, x: ast.expr) -> tuple[str, int]:
        return self.to.put("||", self(x)), ATOM

    def _np_conj(self, x: ast.expr) -> tuple[str, int]:
        if self.to.stacked and isinstance(x, ast.Attribute) and x.attr == "mT":
            return self._raised(x.value, self.to.name("H"))
        return self._raised(x, self.to.sign("*")) if self.to.stacked else self._applied("conj", self(x))

    _np_conjugate = _np_conj

    def _np_outer(self, x: ast.expr, y: ast.expr) -> tuple[str, int]:
        return self.to.binary(self(x, MUL), THIN, self._raised(y, self.to.name("⊤"))[0]), MUL

    def _np_zeros(self, shape: ast.expr, dtype: ast.expr) -> tuple[str, int]:
        return self._applied(self.to.function("zeros"), self(shape))

    def _np_eye(self, n: ast.expr) -> tuple[str, int]:
        return self.to.name("I"), ATOM

    def _np_expand_dims(self, x: ast.expr, axis: ast.expr) -> tuple[str, int]:
        return self._read(x)  # broadcasting adds the axis

    def _np_transpose(self, x: ast.expr, *axes: ast.expr) -> tuple[str, int]:
        return self._raised(x, self.to.name("⊤") + self.to.put("()", self.to.listed([self(a) for a in axes])))

    _np_swapaxes = _np_transpose

    def _np_broadcast_to(self, x: ast.expr, shape: ast.expr) -> tuple[str, int]:
        return self._applied(self.to.function("broadcast"), self(x), below=self(shape))

    def _np_reshape(self, x: ast.expr, *shape: ast.expr) -> tuple[str, int]:
        return self._applied(self.to.function("reshape"), self(x), below=self.to.listed([self(n) for n in shape]))

    def _np_unbroadcast(self, x: ast.expr, shape: ast.expr, dtype: ast.expr) -> tuple[str, int]:
        return self._applied(self.to.function("sum"), self(x), below=self.to.sign("→") + self(shape))

    def _np_astype(self, x: ast.expr, dtype: ast.expr) -> tuple[str, int]:
        return self._applied(self.to.function(ast.unparse(dtype).removeprefix("np.")), self(x))

    def _np_sum(self, x: ast.expr, axis: ast.expr | None = None) -> tuple[str, int]:
        body, _ = self._last(x, MUL)
        if axis is None:
            return self.to.put("sum", body), OPEN
        return self.to.put("sum over", self._axis(axis), body), OPEN


def _is_negative(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def print_tree(tree: ast.expr, to: Alphabet, scalars: frozenset[str] | None = None) -> str:
    """Print a formula in an output format."""
    return Printer(to, scalars)(tree)


def name_math(name: str, *, bar: bool = False) -> str:
    """Return a variable's name as MathML; with ``bar``, the name of its cotangent."""
    return f"<math>{MATHML.name(name + BAR * bar)}</math>"


def derivative_math(top: str, bottom: str) -> str:
    """Return ∂top/∂bottom, of two names, as MathML."""
    return f"<math>{MATHML.put('derivative', MATHML.name(top), MATHML.name(bottom))}</math>"
