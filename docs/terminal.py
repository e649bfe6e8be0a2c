#!/usr/bin/env python3
"""Draws the terminal picture of the README: runs the commands on a copy of examples/harbor and prints their output as SVG.

  docs/terminal.py [PORTOLAN] > docs/terminal.svg

PORTOLAN is the binary, `target/release/portolan` if not given. Nothing but git and Python's own library is needed.
"""
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
HARBOR = TOP / "examples/harbor"

# What the branch in the picture changes: a file, what stands there, and what takes its place.
EDITS = [
    ("apps/base/quay/deployment.yaml", "quay:2.3.0", "quay:2.4.0"),
    ("clusters/production/settings.yaml", 'REPLICAS: "3"', 'REPLICAS: "5"'),
]

# What is shown: the commands as a reader would type them. Their output is shown whole.
COMMANDS = [
    "portolan test",
    "portolan diff --from main --path clusters/production",
    "portolan explain deploy/beacon.spec.replicas --path clusters/production",
]

COLUMNS = 136
GLYPH, LINE, MARGIN = 8.4, 19, 18
INK = {
    "30": "#6e7681", "31": "#ff7b72", "32": "#56d364", "33": "#e3b341",
    "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea", "37": "#c9d1d9", "90": "#8b949e",
}


def branch(directory):
    """A copy of the example as a git repository, with the edits not committed yet."""
    harbor = Path(directory) / "harbor"
    shutil.copytree(HARBOR, harbor)
    author = ["-c", "user.name=harbor", "-c", "user.email=harbor@example.com"]
    for args in (["init", "-q", "-b", "main"], ["add", "-A"], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *args], cwd=harbor, check=True)
    for name, old, new in EDITS:
        text = (harbor / name).read_text()
        if old not in text:
            sys.exit(f"{name} has no `{old}`")
        (harbor / name).write_text(text.replace(old, new))
    return harbor


def output(binary, command, harbor):
    """The lines that a command prints, with its colours."""
    arguments = command.split(" ")[1:]
    run = subprocess.run(
        [binary, "--color", "always", *arguments],
        cwd=harbor, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": ""},
    )
    if run.returncode > 1:
        sys.exit(f"{command} failed:\n{run.stderr}")
    return run.stdout.rstrip("\n").split("\n")


def spans(line):
    """A line as pieces of text, each with the codes that hold for it."""
    codes, column = set(), 0
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b"):
            for code in piece[2:-1].split(";"):
                codes = after(codes, code.lstrip("0"))
        elif piece:
            piece = piece[: COLUMNS - column]
            yield column, piece, codes
            column += len(piece)


def after(codes, code):
    """The codes that hold once another one was met; a colour takes the place of the one before."""
    if code == "":
        return set()
    if code in INK or code == "39":
        return (codes - set(INK) | {code}) - {"39"}
    return codes - {"1", "2"} if code == "22" else codes | {code}


def styled(codes):
    colour = next((INK[code] for code in sorted(codes) if code in INK), None)
    style = f' fill="{colour}"' if colour else ""
    style += ' font-weight="bold"' if "1" in codes else ""
    return style + (' opacity="0.7"' if "2" in codes else "")


def draw(lines):
    height = len(lines) * LINE + 2 * MARGIN + 24
    width = COLUMNS * GLYPH + 2 * MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img" aria-label="portolan test, diff and explain in a terminal">'
    yield f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#0d1117"/>'
    for number, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        yield f'<circle cx="{MARGIN + 6 + number * 18}" cy="18" r="5.5" fill="{colour}"/>'
    yield '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" fill="#c9d1d9">'
    for row, line in enumerate(lines):
        y = MARGIN + 32 + row * LINE
        for column, text, codes in spans(line):
            if text.strip():
                x = MARGIN + column * GLYPH
                length = len(text) * GLYPH
                yield f'<text x="{x:.1f}" y="{y}" xml:space="preserve" textLength="{length:.1f}"{styled(codes)}>{html.escape(text)}</text>'
    yield "</g></svg>"


def main():
    binary = str(Path(sys.argv[1] if len(sys.argv) > 1 else TOP / "target/release/portolan").resolve())
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        harbor = branch(directory)
        for command in COMMANDS:
            lines += [f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m", *output(binary, command, harbor), ""]
    print("\n".join(draw(lines[:-1])))


if __name__ == "__main__":
    main()
