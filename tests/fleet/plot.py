"""Bars as SVG, on a scale of powers of ten."""

import math

WIDTH, LEFT, ROW, TOP = 720, 260, 28, 44


def bars(title, values):
    """A picture with a bar and a figure for each (name, value)."""
    lowest = 10 ** math.floor(math.log10(min(value for _, value in values)))
    highest = max(value for _, value in values)
    room = WIDTH - LEFT - 80

    def length(value):
        return room * math.log(value / lowest) / math.log(highest / lowest)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{TOP + ROW * len(values) + 8}" font-family="sans-serif" font-size="14">',
             '<rect width="100%" height="100%" fill="#fff"/>', f'<text x="8" y="24" font-weight="bold">{title}</text>']
    for number, (name, value) in enumerate(values):
        y = TOP + ROW * number
        lines += [f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{name}</text>',
                  f'<rect x="{LEFT}" y="{y}" width="{length(value):.0f}" height="20" fill="#3b6ea5"/>',
                  f'<text x="{LEFT + length(value) + 6:.0f}" y="{y + 15}">{value:,.0f}</text>']
    return "\n".join([*lines, "</svg>\n"])
