#!/usr/bin/env python3
"""Draws a terminal's content, as `tmux capture-pane -e -p` gives it on standard
input, as an SVG picture. Usage: svg.py dark|light COLUMNS < capture > picture.svg
"""
import html
import re
import sys
import unicodedata

CELL, LINE, PAD = 8.4, 18, 16
PALETTES = {
    "dark": dict(ground="#16181d", text="#d5d8de", faint="#838a97", r="#f07178", g="#8ccf7e", y="#e5c76b", c="#67cbe7"),
    "light": dict(ground="#fbfbf8", text="#2b2f36", faint="#7d838d", r="#c02c38", g="#2f7d32", y="#8a6200", c="#08758c"),
}
COLOURS = {31: "r", 32: "g", 33: "y", 36: "c"}


def width(ch):
    if unicodedata.combining(ch):
        return 0
    return 2 if unicodedata.east_asian_width(ch) in "WF" else 1


def spans(line, state):
    """Yields (column, cells, text, state) for each run of one look."""
    column = 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        found = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not found:
            cells = sum(width(ch) for ch in part)
            if part:
                yield column, cells, part, dict(state)
            column += cells
            continue
        for code in [int(n or 0) for n in found.group(1).split(";")]:
            if code == 0:
                state.clear()
            elif code in (1, 2, 7):
                state[code] = True
            elif code == 22:
                state.pop(1, None), state.pop(2, None)
            elif code == 27:
                state.pop(7, None)
            elif code == 39:
                state.pop("colour", None)
            elif code in COLOURS:
                state["colour"] = COLOURS[code]


def main():
    palette, columns = PALETTES[sys.argv[1]], int(sys.argv[2])
    lines = sys.stdin.read().rstrip("\n").split("\n")
    w, h = columns * CELL + 2 * PAD, len(lines) * LINE + 2 * PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}" '
        f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">',
        f'<rect width="100%" height="100%" rx="8" fill="{palette["ground"]}"/>',
    ]
    state = {}
    for row, line in enumerate(lines):
        y = PAD + row * LINE
        for column, cells, text, look in spans(line, state):
            ink = palette[look.get("colour", "faint" if look.get(2) else "text")]
            x = PAD + column * CELL
            if look.get(7):
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{cells * CELL:.1f}" height="{LINE}" fill="{palette["text"]}"/>')
                ink = palette["ground"]
            if not text.strip():
                continue
            lead = len(text) - len(text.lstrip())
            text, x = text.strip(), x + lead * CELL
            length = sum(width(ch) for ch in text) * CELL
            bold = ' font-weight="bold"' if look.get(1) else ""
            out.append(
                f'<text x="{x:.1f}" y="{y + 13.5}" fill="{ink}"{bold} textLength="{length:.1f}" '
                f'lengthAdjust="spacingAndGlyphs">{html.escape(text)}</text>'
            )
    out.append("</svg>")
    print("\n".join(out))


main()
