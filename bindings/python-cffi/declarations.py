"""What cffi is told of include/pld.h: the header itself, without what only a compiler understands."""

import re


def declarations(header: str) -> str:
    """The types, enums, functions and numbers of the header."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif.*?\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^static inline .*?(?:\{[^\n]*\}|^\})\n", "", text, flags=re.DOTALL | re.MULTILINE)
    numbers = re.findall(r"^#define PLD_\w+ -?\d+$", text, flags=re.MULTILINE)
    text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bPLD_API\b", "", text)
    return "\n".join(numbers) + "\n" + text
