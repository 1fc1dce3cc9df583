"""The innermost loops of machine code, read from its assembly: how much of each is arithmetic, and what spills."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

_COMMENT = re.compile(r"(#(?!-?\d)|//).*")
_LABEL = re.compile(r"^([\w.$\"]+):")
_JUMP = re.compile(r"^\s+(?:j\w+|b|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+,\s*#\d+,)\s+(\.L\w+)$")
_INSTRUCTION = re.compile(r"^\s+(?:\{\w+\}\s+)?([a-z][\w.]*)\s*(.*)$")
_PRODUCT = re.compile(
    r"^(vfn?m(add|sub)\d+[sp][sd]|v?mul[sp]s|vpdp(busd|wssd)\w*|v?pmaddwd|fml[as]|fmul|[su]dot|smmla|sml[as]l2?|smull2?)$"
)
_STACK = re.compile(r"\(%rsp\b|\[sp\b")
_VECTOR = re.compile(r"%[xyz]mm|\b[qv]\d+")


@attrs.frozen
class InnerLoop:
    """A loop without another one inside.

    Attributes:
        function: label of the function that it stands in.
        instructions: (name, operands) in their order, the jump back included.
    """

    function: str
    instructions: tuple[tuple[str, str], ...]

    @property
    def products(self) -> int:
        """How many of them multiply: fused with an addition where the tier can."""
        return sum(bool(_PRODUCT.match(name)) for name, _ in self.instructions)

    @property
    def share(self) -> float:
        """The share of products."""
        return self.products / len(self.instructions)

    @property
    def stack_references(self) -> int:
        """How many read or write the stack: what did not fit into registers."""
        return sum(bool(_STACK.search(operands)) for _, operands in self.instructions)

    @property
    def vectors_on_stack(self) -> int:
        """How many of these are of vectors. Code has no frame pointer: `rbp` is a register as others."""
        pairs = ((_STACK.search(operands), _VECTOR.search(operands)) for _, operands in self.instructions)
        return sum(bool(on_stack and is_vector) for on_stack, is_vector in pairs)


def inner_loops(assembly: str) -> Iterator[InnerLoop]:
    """All innermost loops of x86 code in AT&T syntax, or of Arm code of 64 bits."""
    function = ""
    lines: list[tuple[str, str] | str] = []
    positions: dict[str, int] = {}
    last_head = -1
    for line in assembly.splitlines():
        text = _COMMENT.sub("", line).rstrip()
        label = _LABEL.match(text)
        if label:
            name = label.group(1).strip('"')
            if not name.startswith(".L"):
                function, lines, positions, last_head = name, [], {}, -1
            positions[name] = len(lines)
            continue
        found = _INSTRUCTION.match(text)
        if not found or found.group(1).startswith("."):
            continue
        lines.append((found.group(1), found.group(2)))
        jump = _JUMP.match(text)
        head = positions.get(jump.group(1)) if jump else None
        # A jump to an earlier place closes a loop; it is an innermost one when none was closed behind its head.
        if head is not None and head > last_head:
            last_head = head
            yield InnerLoop(function, tuple(one for one in lines[head:] if isinstance(one, tuple)))
