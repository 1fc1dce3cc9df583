"""Finds what a Python script uses of TensorRT, without running it.

Objects are followed from their constructors and factories through assignments, attributes of `self`, annotations, with
statements, loops and returned values. A variable whose origin is unknown, such as a parameter, counts by its name
(`config`, `trt_engine`), and its uses are marked as such.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit_tensorrt.surface.tables import classes

MODULES = ("tensorrt", "tensorrt_lean", "tensorrt_dispatch", "tensorrt_bindings")

IMPORTING_CALLS = ("__import__", "import_module", "importorskip", "lazy_import")
"""Functions that import a module by a string, such as `importlib.import_module` and Polygraphy's `lazy_import`."""

RESULTS = {
    "Builder.create_network": "INetworkDefinition",
    "Builder.create_builder_config": "IBuilderConfig",
    "Builder.create_optimization_profile": "IOptimizationProfile",
    "Builder.build_engine": "ICudaEngine",
    "Builder.build_engine_with_config": "ICudaEngine",
    "Builder.build_serialized_network": "IHostMemory",
    "Builder.get_plugin_registry": "IPluginRegistry",
    "Runtime.deserialize_cuda_engine": "ICudaEngine",
    "Runtime.get_plugin_registry": "IPluginRegistry",
    "ICudaEngine.create_execution_context": "IExecutionContext",
    "ICudaEngine.create_execution_context_without_device_memory": "IExecutionContext",
    "ICudaEngine.create_engine_inspector": "EngineInspector",
    "ICudaEngine.serialize": "IHostMemory",
    "IExecutionContext.engine": "ICudaEngine",
    "IBuilderConfig.create_timing_cache": "ITimingCache",
    "IBuilderConfig.get_timing_cache": "ITimingCache",
    "INetworkDefinition.add_input": "ITensor",
    "INetworkDefinition.get_input": "ITensor",
    "INetworkDefinition.get_output": "ITensor",
    "INetworkDefinition.get_layer": "ILayer",
    "INetworkDefinition.__getitem__": "ILayer",
    "INetworkDefinition.builder": "Builder",
    "INetworkDefinition.add_loop": "ILoop",
    "INetworkDefinition.add_if_conditional": "IIfConditional",
    "INetworkDefinition.add_convolution": "IConvolutionLayer",
    "INetworkDefinition.add_convolution_nd": "IConvolutionLayer",
    "INetworkDefinition.add_deconvolution": "IDeconvolutionLayer",
    "INetworkDefinition.add_deconvolution_nd": "IDeconvolutionLayer",
    "INetworkDefinition.add_pooling": "IPoolingLayer",
    "INetworkDefinition.add_pooling_nd": "IPoolingLayer",
    "INetworkDefinition.add_padding": "IPaddingLayer",
    "INetworkDefinition.add_padding_nd": "IPaddingLayer",
    "INetworkDefinition.add_normalization": "INormalizationLayer",
    "INetworkDefinition.add_normalization_v2": "INormalizationLayer",
    "INetworkDefinition.add_fully_connected": "IFullyConnectedLayer",
    "INetworkDefinition.add_rnn_v2": "IRNNv2Layer",
    "ILayer.get_input": "ITensor",
    "ILayer.get_output": "ITensor",
    "OnnxParser.get_error": "ParserError",
    "get_plugin_registry": "IPluginRegistry",
}
"""Method, property or function to the class of what it gives. Other `add_*` methods of a network give an `ILayer`."""

NAME_HINTS = (
    (r"(.*_)?builder", "Builder"),
    (r"(.*_)?network", "INetworkDefinition"),
    (r"((builder|trt|build)_)?(config|cfg)", "IBuilderConfig"),
    (r"(.*_)?engine", "ICudaEngine"),
    (r"((trt|exec|execution)_)?(context|ctx)", "IExecutionContext"),
    (r"(.*_)?runtime", "Runtime"),
    (r"(.*_)?(parser)", "OnnxParser"),
    (r"(.*_)?layer", "ILayer"),
    (r"(.*_)?refitter", "Refitter"),
    (r"(.*_)?inspector", "EngineInspector"),
    (r"(plugin_)?registry", "IPluginRegistry"),
)
"""Pattern of a variable's last name to the class that it probably has."""

_ELEMENTS = {"INetworkDefinition": "ILayer"}
"""Class to the class of what iterating it gives."""

_VERSION_TEST = re.compile(r"__version__|\bhasattr\b|\b_?(is_)?trt_?(v|ver|version)?_?\d*\b(?=\s*[<>=])|\bis_trt\d+")


@frozen
class Use:
    """One use of a name of TensorRT.

    Attributes:
        line, column: where it is, from 1.
        text: the source, in one line.
        owner: the class or enumeration; "" for a name of the module itself.
        member: the name.
        is_written: whether it is assigned to.
        call: the call, if it is called.
        is_certain: whether the owner follows from the script, and not only from a variable's name.
        guard: the condition under which it runs, if that tests the version or the presence of a name; "" for none.
        integer: the value of an integer where an enumeration's value or a mask of its values is expected, with the
            enumeration as the owner; None elsewhere.
        is_mask: whether the integer is a mask.
    """

    line: int
    column: int
    text: str
    owner: str
    member: str
    is_written: bool = False
    call: ast.Call | None = attrs.field(default=None, eq=False, repr=False)
    is_certain: bool = True
    guard: str = ""
    integer: int | None = None
    is_mask: bool = True


@frozen
class Type:
    """What an expression is.

    Attributes:
        name: a class of TensorRT.
        is_class: whether it is the class itself and not an object of it.
        is_certain: whether this follows from the script.
    """

    name: str
    is_class: bool = False
    is_certain: bool = True


def uses_of(source: str, filename: str) -> list[Use] | None:
    """Return the uses of TensorRT in a script, in its order; None if it does not import TensorRT.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = ast.parse(source, filename)
    reader = _Reader(source)
    reader.visit(tree)  # the first time to see what variables are, wherever they are assigned
    if not reader.imports:
        return None
    reader.found = []
    reader.emits = True
    reader.visit(tree)
    return sorted(set(reader.found), key=lambda use: (use.line, use.column))


_MASKS = {
    "IBuilderConfig.flags": "BuilderFlag",
    "IBuilderConfig.quantization_flags": "QuantizationFlag",
    "OnnxParser.flags": "OnnxParserFlag",
}
"""Properties that are masks of an enumeration's values."""

_MASK_ARGUMENTS = {
    "Builder.create_network": ("NetworkDefinitionCreationFlag", "flags"),
    "IBuilderConfig.set_tactic_sources": ("TacticSource", "tactic_sources"),
}
"""Methods whose first argument is such a mask, with its name."""


class _Reader(ast.NodeVisitor):
    """Goes through a script, and keeps the types of variables by scope."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines()
        self.imports: dict[str, str] = {}
        self.found: list[Use] = []
        self.emits = False
        self.scopes: list[dict[str, Type]] = [{}]
        self.kept: dict[int, dict[str, Type]] = {}
        self.integers: dict[str, int] = {}
        self.version_names: set[str] = set()
        self.results: dict[str, Type | list[Type | None]] = {}
        self.subclasses: dict[str, str] = {}
        self.guards: list[str] = []
        self.calls: dict[int, ast.Call] = {}

    # Imports ----------------------------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            if one.name.partition(".")[0] in MODULES:
                self.imports[one.asname or one.name.partition(".")[0]] = ""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if (node.module or "") not in MODULES or node.level:
            return
        for one in node.names:
            if one.name == "*":
                names = {name for major in (8, 10, 11) for name in classes(major)}
                self.imports.update({name: name for name in names})
            else:
                self.imports[one.asname or one.name] = one.name
                self._emit(node, "", one.name)

    # Scopes -----------------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.scopes.append(self.kept.setdefault(id(node), {}))
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for one in arguments:
            found = self._annotated(one.annotation)
            if found is not None:
                self.scopes[-1][one.arg] = found
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value is not None:
                self._keep_result(node.name, inner.value)
        if node.returns is not None and (annotated := self._annotated(node.returns)):
            self.results[node.name] = annotated
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  the name of ast's visitor

    def _keep_result(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Tuple):
            self.results[name] = [self.type_of(one) for one in value.elts]
        elif found := self.type_of(value):
            self.results[name] = found

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for parent in node.bases:
            found = self.type_of(parent)
            if found is not None and found.is_class:
                self.subclasses[node.name] = found.name
        # A class's scope has the attributes of its objects under `self.name`.
        self.scopes.append(self.kept.setdefault(id(node), {}))
        self.generic_visit(node)
        self.scopes.pop()

    def _assign(self, target: ast.expr, found: Type | list[Type | None] | None) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            several = found if isinstance(found, list) else [None] * len(target.elts)
            for one, own in zip(target.elts, several, strict=False):
                self._assign(one, own)
        elif isinstance(found, Type):
            name = _dotted(target)
            if name is None:
                return
            scope = self.scopes[-1]
            if name.startswith("self.") and len(self.scopes) > 1:
                scope = self.scopes[-2]
            if self.emits and not found.is_certain and name in scope:
                return
            scope[name] = found

    def visit_Assign(self, node: ast.Assign) -> None:
        several = isinstance(node.value, ast.Tuple)
        found = [self.type_of(one) for one in node.value.elts] if several else self.type_of(node.value)  # type: ignore[attr-defined]
        if isinstance(node.value, ast.Call) and found is None:
            found = self._returned(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name) and _imports_tensorrt(node.value):
                self.imports[target.id] = ""
            self._assign(target, found)
            self._note_constant(target, node.value)
            self._mask(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._assign(node.target, (node.value and self.type_of(node.value)) or self._annotated(node.annotation))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._mask(node.target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assign(node.target, self.type_of(node.value))
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._assign(item.optional_vars, self.type_of(item.context_expr))
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self._assign(node.target, self._element(node.iter))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._assign(node.target, self._element(node.iter))
        self.generic_visit(node)

    def _comprehension(self, node: Any) -> None:
        for generator in node.generators:
            self.visit(generator)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                self.visit(getattr(node, name))

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension  # noqa: N815

    def _element(self, node: ast.expr) -> Type | list[Type | None] | None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "enumerate" and node.args:
            inner = self._element(node.args[0])
            return [None, inner if isinstance(inner, Type) else None]
        found = self.type_of(node)
        if found is None or found.is_class or found.name not in _ELEMENTS:
            return None
        return Type(_ELEMENTS[found.name], is_certain=found.is_certain)

    # Guards -----------------------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._guarded(self._guard_of(node.test), [*node.body, *node.orelse])

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit(node.test)
        self._guarded(self._guard_of(node.test), [node.body, node.orelse])

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            name for one in node.handlers if one.type is not None for name in re.findall(r"\w+", ast.unparse(one.type))
        }
        guard = "except AttributeError" if "AttributeError" in caught else ""
        self._guarded(guard, node.body)
        self._guarded(guard, [statement for one in node.handlers for statement in one.body])
        for statement in (*node.orelse, *node.finalbody):
            self.visit(statement)

    def _guard_of(self, test: ast.expr) -> str:
        text = ast.unparse(test)
        names = {one.id for one in ast.walk(test) if isinstance(one, ast.Name)}
        return text if _VERSION_TEST.search(text) or names & self.version_names else ""

    def _guarded(self, guard: str, nodes: Sequence[ast.AST]) -> None:
        if guard:
            self.guards.append(guard)
        for one in nodes:
            self.visit(one)
        if guard:
            self.guards.pop()

    # Types ------------------------------------------------------------------------------------------------------------

    def _annotated(self, node: ast.expr | None) -> Type | None:
        """Return what an annotation names, also inside of `Optional[...]` and quotes."""
        if node is None:
            return None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                return self._annotated(ast.parse(node.value, mode="eval").body)
            except SyntaxError:
                return None
        for one in ast.walk(node):
            found = self.type_of(one) if isinstance(one, (ast.Attribute, ast.Name)) else None
            if found is not None and found.is_class:
                return Type(found.name)
        return None

    def type_of(self, node: ast.AST | None) -> Type | None:
        """Return what an expression is; None for what is unknown or not TensorRT's."""
        match node:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=base, attr=attr):
                return self._attribute(node, base, attr)
            case ast.Call():
                return self._called(node)
            case ast.Subscript(value=base):
                owner = self.type_of(base)
                return None if owner is None or owner.is_class else self._result(owner, "__getitem__")
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.type_of(value)
            case ast.IfExp(body=body, orelse=other):
                return self.type_of(body) or self.type_of(other)
            case ast.BoolOp(values=values):
                return next((found for one in values if (found := self.type_of(one))), None)
            case _:
                return None

    def _named(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if self.imports.get(name):
            return Type(self.imports[name], is_class=True)
        if name in self.subclasses:
            return Type(self.subclasses[name], is_class=True)
        return None if name in self.imports else _hinted(name)

    def _attribute(self, node: ast.Attribute, base: ast.expr, attr: str) -> Type | None:
        if self._is_module(base):
            return Type(attr, is_class=True)
        owner = self.type_of(base)
        if owner is not None:
            if owner.is_class:
                return Type(f"{owner.name}.{attr}", is_class=True) if owner.name == "Logger" else None
            return self._result(owner, attr)
        name = _dotted(node)
        if name is not None:
            for scope in reversed(self.scopes):
                if name in scope:
                    return scope[name]
        return _hinted(attr)

    def _called(self, node: ast.Call) -> Type | None:
        if isinstance(node.func, ast.Attribute) and not self._is_module(node.func.value):
            owner = self.type_of(node.func.value)
            if owner is not None and not owner.is_class:
                return self._result(owner, node.func.attr)
            found = self._returned(node)
            return found if isinstance(found, Type) else None
        made = self.type_of(node.func)
        if made is not None and made.is_class:
            return Type(RESULTS.get(made.name, made.name), is_certain=made.is_certain)
        found = self._returned(node)
        return found if isinstance(found, Type) else None

    def _returned(self, node: ast.Call) -> Type | list[Type | None] | None:
        """Return what a function of the script returns."""
        name = (_dotted(node.func) or "").rpartition(".")[2]
        return self.results.get(name)

    def _result(self, owner: Type, member: str) -> Type | None:
        name = RESULTS.get(f"{owner.name}.{member}")
        if name is None and owner.name == "INetworkDefinition" and member.startswith("add_"):
            name = "ILayer"
        if name is None and owner.name.endswith("Layer"):
            name = RESULTS.get(f"ILayer.{member}")
        return None if name is None else Type(name, is_certain=owner.is_certain)

    def _is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.imports.get(node.id) == ""

    # Uses -------------------------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        call = self.calls.get(id(node))
        is_written = isinstance(node.ctx, ast.Store)
        if self._is_module(node.value):
            self._emit(node, "", node.attr, call=call)
        else:
            owner = self.type_of(node.value)
            if owner is not None:
                self._emit(node, owner.name, node.attr, call=call, is_written=is_written, is_certain=owner.is_certain)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if self.imports.get(node.id) and isinstance(node.ctx, ast.Load) and self._named(node.id) is not None:
            self._emit(node, "", self.imports[node.id], call=self.calls.get(id(node)))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        owner = self.type_of(node.value)
        if owner is not None and not owner.is_class:
            self._emit(node, owner.name, "__getitem__", is_certain=owner.is_certain)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.calls[id(node.func)] = node
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "len" and node.args:
            owner = self.type_of(node.args[0])
            if owner is not None and not owner.is_class:
                self._emit(node, owner.name, "__len__", is_certain=owner.is_certain)
        if name in {"getattr", "hasattr"} and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            self._named_attribute(node, node.args[0], str(node.args[1].value), is_test=name == "hasattr")
        self._mask_argument(node)
        self.generic_visit(node)

    def _named_attribute(self, node: ast.Call, base: ast.expr, attr: str, *, is_test: bool) -> None:
        """`getattr(trt.BuilderFlag, "FP16")`; with a default, and in `hasattr`, its absence is expected."""
        guard = ast.unparse(node) if is_test or len(node.args) > 2 else ""
        if is_test:
            return
        owner = Type("", is_class=True) if self._is_module(base) else self.type_of(base)
        if owner is not None:
            if guard:
                self.guards.append(guard)
            self._emit(node, owner.name, attr, is_certain=owner.is_certain)
            if guard:
                self.guards.pop()

    # Integers that are values of enumerations -------------------------------------------------------------------------

    def _note_constant(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            found = self._integer(value)
            if found is not None:
                self.integers[target.id] = found
            if "__version__" in ast.unparse(value):
                self.version_names.add(target.id)

    def _integer(self, node: ast.expr) -> int | None:
        """Return the value of an expression of plain integers; None for others."""
        match node:
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name):
                return self.integers.get(name)
            case ast.Call(func=ast.Name(id="int"), args=[inner]):
                return self._integer(inner)
            case ast.BinOp(left=left, op=(ast.LShift() | ast.BitOr() | ast.Add()) as op, right=right):
                first, second = self._integer(left), self._integer(right)
                if first is None or second is None:
                    return None
                if isinstance(op, ast.LShift):
                    return first << second if 0 <= second < 64 else None
                return first + second if isinstance(op, ast.Add) else first | second
            case _:
                return None

    def _mask(self, target: ast.expr, value: ast.expr) -> None:
        """A mask that is assigned to a property."""
        if not isinstance(target, ast.Attribute):
            return
        owner = self.type_of(target.value)
        enumeration = _MASKS.get(f"{owner.name}.{target.attr}") if owner is not None else None
        if owner is not None and enumeration is not None:
            self._emit_integer(value, enumeration, certain=owner.is_certain, is_mask=True)

    def _mask_argument(self, node: ast.Call) -> None:
        if not isinstance(node.func, ast.Attribute) or self._is_module(node.func.value):
            made = self.type_of(node.func)
            if made is not None and made.is_class and len(node.args) == 1:
                self._emit_integer(node.args[0], made.name, certain=True, is_mask=False)
            return
        owner = self.type_of(node.func.value)
        found = _MASK_ARGUMENTS.get(f"{owner.name}.{node.func.attr}") if owner is not None else None
        if owner is not None and found is not None:
            enumeration, name = found
            given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == name)]
            if given:
                self._emit_integer(given[0], enumeration, certain=owner.is_certain, is_mask=True)

    def _emit_integer(self, node: ast.expr, enumeration: str, *, certain: bool, is_mask: bool) -> None:
        value = self._integer(node)
        if value is not None:
            self._emit(node, enumeration, "", integer=value, is_certain=certain, is_mask=is_mask)

    def _emit(self, node: ast.AST, owner: str, member: str, **facts: Any) -> None:
        if self.emits:
            text = " ".join((ast.get_source_segment(self.source, node) or "").split())
            line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
            self.found.append(Use(line, column, text, owner, member, guard=" and ".join(self.guards), **facts))


def _dotted(node: ast.AST) -> str | None:
    """Return `a.b.c` of names and attributes; None for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _imports_tensorrt(node: ast.expr) -> bool:
    called = (_dotted(node.func) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""
    if called == "lazy_import_trt":  # Polygraphy's
        return True
    if not isinstance(node, ast.Call) or called not in IMPORTING_CALLS:
        return False
    name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    return isinstance(name, str) and re.split(r"\W", name)[0] in MODULES


def _hinted(name: str) -> Type | None:
    for pattern, owner in NAME_HINTS:
        if re.fullmatch(pattern, name.lower().lstrip("_")):
            return Type(owner, is_certain=False)
    return None


def keywords_of(call: ast.Call) -> Iterator[str]:
    """Return the names of the keyword arguments of a call."""
    return (one.arg for one in call.keywords if one.arg is not None)
