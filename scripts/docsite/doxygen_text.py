"""Converts Doxygen's XML of a comment to Markdown."""

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element

Link = Callable[[str], str | None]
"""The address of the target of a reference, relative to the page, or None if it has no page."""

_MARKS = str.maketrans({"<": "&lt;", ">": "&gt;", "*": "\\*", "_": "\\_", "[": "\\[", "]": "\\]"})
_PLAIN = {"emphasis": "*", "bold": "**"}
_CHARACTERS = {"ndash": "-", "mdash": "-", "sp": " ", "linebreak": "\n", "nonbreakablespace": " "}
_KINDS = {"return": "Returns", "see": "See", "note": "Note", "warning": "Warning", "pre": "Before", "post": "After"}


def code_text(element: Element) -> str:
    """The verbatim text of an element, with the spaces that Doxygen writes as elements."""
    parts = [element.text or ""]
    for child in element:
        parts.append(" " if child.tag == "sp" else code_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _inline(element: Element, link: Link) -> str:
    """An element within a paragraph."""
    if element.tag in _CHARACTERS:
        return _CHARACTERS[element.tag]
    if element.tag in _PLAIN:
        return f"{_PLAIN[element.tag]}{text(element, link)}{_PLAIN[element.tag]}"
    if element.tag == "computeroutput":
        inner = code_text(element)
        refs = list(element)
        target = link(refs[0].attrib["refid"]) if len(refs) == 1 and code_text(refs[0]) == inner else None
        return f"[`{inner}`]({target})" if target else f"`{inner}`"
    if element.tag == "ref":
        target = link(element.attrib["refid"])
        return f"[{text(element, link)}]({target})" if target else text(element, link)
    if element.tag == "ulink":
        return f"[{text(element, link)}]({element.attrib['url']})"
    raise ValueError(f"Doxygen writes <{element.tag}>, which the C++ reference cannot render")


def _block(element: Element, link: Link) -> str | None:
    """A block element, or None for other elements."""
    if element.tag in {"programlisting", "verbatim", "preformatted"}:
        lines = [code_text(line) for line in element] if element.tag == "programlisting" else [code_text(element)]
        body = "\n".join(lines).strip("\n")
        return f"```cpp\n{body}\n```"
    if element.tag in {"itemizedlist", "orderedlist"}:
        mark = "-   " if element.tag == "itemizedlist" else "1.  "
        items = [markdown(item, link).replace("\n", "\n    ") for item in element]
        return "\n".join(f"{mark}{item}" for item in items)
    if element.tag == "simplesect":
        return f"**{_KINDS[element.attrib['kind']]}:** {markdown(element, link)}"
    if element.tag == "parameterlist":
        rows = []
        for item in element:
            names = ", ".join(f"`{code_text(name)}`" for name in item.iter("parametername"))
            described = item.find("parameterdescription")
            rows.append(f"-   {names}: {markdown(described, link) if described is not None else ''}")
        return "\n".join(rows)
    if element.tag == "para":
        return markdown(element, link)
    return None


def text(element: Element, link: Link) -> str:
    """The content of an element within a paragraph."""
    parts = [(element.text or "").translate(_MARKS)]
    for child in element:
        parts.append(_inline(child, link))
        parts.append((child.tail or "").translate(_MARKS))
    return "".join(parts)


def markdown(element: Element, link: Link) -> str:
    """The content of an element, paragraph by paragraph."""
    blocks: list[str] = []
    line = (element.text or "").translate(_MARKS)
    for child in element:
        block = _block(child, link)
        if block is None:
            line += _inline(child, link)
        else:
            blocks += [line.strip(), block]
            line = ""
        line += (child.tail or "").translate(_MARKS)
    blocks.append(line.strip())
    return "\n\n".join(re.sub(r" +\n", "\n", block) for block in blocks if block)
