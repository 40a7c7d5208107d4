"""Writes docs/reference.md from the docstrings of the public names: `python docs/make_reference.py`.

A test checks that the file is what this makes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

MODULES: dict[str, tuple[str, ...]] = {
    "everthread": (),
    "everthread.graphs": (),
    "everthread.nodes": (),
    "everthread.nodes.extract": (),
    "everthread.nodes.compact": (),
    "everthread.nodes.consolidate": (),
    "everthread.nodes.restore": (),
    "everthread.nodes.reason": (),
    "everthread.stores": (),
    "everthread.stores.contract": (),
    "everthread.stores.record": (),
    "everthread.stores.identity": ("Within", "identity_from"),
    "everthread.errors": (),
}
"""Modules in this order, and which of their names; all of `__all__` by default. A name is told where it comes first."""
FILE = Path(__file__).with_name("reference.md")
WIDTH = 110
RULES = r"[RS]\d+(?:(?:, | to | and )[RS]\d+)*"
"""Numbers of the rules that a docstring follows."""
HEAD = """# Reference

Every public name, from its docstring; `docs/make_reference.py` writes this file. What the words mean is told in
[turn.md](turn.md) and [governance.md](governance.md). Where a method has a twin for asyncio (`recall` and `arecall`),
the twin is left out."""


class Field(NamedTuple):
    """A field of a class of data, as its source has it."""

    name: str
    type: str
    default: str
    told: str


class Plain(str):
    """Text that is shown in a signature as it is."""

    def __repr__(self) -> str:
        return str(self)


def reference() -> str:
    """The whole document."""
    parts, told = [HEAD], set[int]()
    for name, chosen in MODULES.items():
        module = import_module(name)
        members = {each: getattr(module, each) for each in chosen or module.__all__ if not each.startswith("__")}
        fresh = {each: member for each, member in members.items() if id(member) not in told}
        told |= {id(member) for member in fresh.values()}
        sections = [section for each, member in fresh.items() if (section := section_of(each, member))]
        if sections:
            parts += [f"## {name}", prose(module).split("\n\n")[0], *sections]
    return "\n\n".join(filter(None, parts)) + "\n"


def section_of(name: str, member: Any) -> str:
    """What is said of one name; empty for a constant or an alias, which have no docstring of their own."""
    if not (inspect.isclass(member) or inspect.isfunction(member)):
        return described(name, member)
    fields = list(fields_of(member)) if inspect.isclass(member) else []
    parts = [f"### {name}"]
    is_protocol = getattr(member, "_is_protocol", False)
    if inspect.isfunction(member) or ("__init__" in vars(member) and not is_protocol):
        parts.append(fenced(name, member))
    parts.append(prose(member))
    if fields:
        parts.append(field_table(fields))
    if inspect.isclass(member):
        parts += methods_of(member)
    return "\n\n".join(filter(None, parts))


def field_table(fields: list[Field]) -> str:
    """A row a field; without a column for types where there are none, as in an enumeration."""
    columns = [
        ["field", *(f"`{field.name}`" for field in fields)],
        ["default", *(code(field.default) for field in fields)],
    ]
    if any(field.type for field in fields):
        columns.insert(1, ["type", *(code(field.type) for field in fields)])
    columns.append(["", *(field.told for field in fields)])
    head, *rows = zip(*columns, strict=True)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def described(name: str, member: Any) -> str:
    """A name that is an object: a tool tells what it does."""
    text = getattr(member, "description", None)
    return f"### {name}\n\n{clean(inspect.cleandoc(text))}" if isinstance(text, str) and text else ""


def methods_of(kind: type) -> list[str]:
    """Its own public methods that have a docstring. A node's `steps` says what comes back: that is part of the node."""
    told: list[str] = []
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", member)  # of a class method
        text = inspect.cleandoc(getattr(function, "__doc__", None) or "")
        if name.startswith("_") or not text or not inspect.isfunction(function) or text.endswith("for asyncio."):
            continue
        told.append(clean(text) if name == "steps" else f"{fenced(name, function)}\n\n{clean(text)}")
    return told


def fields_of(kind: type) -> Iterator[Field]:
    """The fields of a class, with the docstrings under them; those of our own base classes first."""
    if not kind.__module__.startswith("everthread"):
        return
    module = import_module(kind.__module__)
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    for base in tree.bases:
        found = getattr(module, base.id, None) if isinstance(base, ast.Name) else None
        if inspect.isclass(found):
            yield from fields_of(found)
    for line, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        told = one_line(docstring(below))
        match line:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_") and not is_of_class(line):
                yield Field(name, ast.unparse(line.annotation), default_of(line.value), told)
            case ast.Assign(targets=[ast.Name(id=name)]) if told:
                yield Field(name, "", ast.unparse(line.value), told)


def is_of_class(line: ast.AnnAssign) -> bool:
    """Whether it is the class's own and no field of its objects."""
    return ast.unparse(line.annotation).startswith("ClassVar")


def docstring(line: ast.stmt | None) -> str:
    """The text of a line that is nothing but a text, as under a field; else empty."""
    match line:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


def default_of(value: ast.expr | None) -> str:
    """A field's default, as it is written; empty when there is none, "made anew" for one that a function makes."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "Field":
        named = {keyword.arg: ast.unparse(keyword.value) for keyword in value.keywords}
        return ast.unparse(value.args[0]) if value.args else "made anew" if "default_factory" in named else ""
    return ast.unparse(value) if value else ""


def fenced(name: str, member: Any) -> str:
    """How it is called, one parameter a line when it is long."""
    signature = inspect.signature(member)
    shown = [shown_parameter(each) for each in signature.parameters.values() if each.name not in ("self", "cls")]
    if "__init__" in vars(member):
        whole = signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)
    else:
        whole = signature.replace(parameters=shown, return_annotation=annotation_of(signature.return_annotation))
    text = f"{name}{whole}"
    if len(text) > WIDTH:
        star = next((n for n, each in enumerate(shown) if each.kind is each.KEYWORD_ONLY), None)
        lines = [str(each) for each in shown]
        if star is not None and not any(each.kind is each.VAR_POSITIONAL for each in shown):
            lines.insert(star, "*")
        end = str(inspect.Signature(return_annotation=whole.return_annotation)).removeprefix("()")
        text = f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){end}"
    return f"```text\n{text}\n```"


def shown_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """The same parameter, its type and its default as a person would write them."""
    default = parameter.default
    if default is inspect.Parameter.empty:
        return parameter.replace(annotation=annotation_of(parameter.annotation))
    if inspect.isroutine(default) or inspect.isclass(default):
        default = Plain(default.__name__)
    return parameter.replace(annotation=annotation_of(parameter.annotation), default=default)


def annotation_of(annotation: Any) -> Any:
    """A type as a person would write it, without the modules of its parts."""
    if annotation is inspect.Parameter.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return Plain(re.sub(r"\b(?:\w+\.)+(?=\w)", "", text))


def prose(member: Any) -> str:
    """Its own docstring, without the numbers of rules."""
    return clean(inspect.cleandoc(member.__doc__ or ""))


def clean(text: str) -> str:
    """The text without the numbers of rules, which mean something to this project alone; code blocks fenced."""
    text = re.sub(rf"\s*\({RULES}\)|, {RULES}(?=\))", "", text)
    text = re.sub(rf"\({RULES}: ", "(", text)
    return re.sub(r"(?m)(?:^    .*\n?)+", lambda found: f"```text\n{inspect.cleandoc(found[0])}\n```\n", text).strip()


def one_line(text: str) -> str:
    return " ".join(clean(inspect.cleandoc(text)).split())


def code(text: str) -> str:
    """As code in a table, if there is any."""
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
