"""Writes unicode_tables.inc from Python's own character database: run with Python 3.11 (Unicode 14).

  python3 tokenizer/chat_template/generate_unicode_tables.py > tokenizer/chat_template/unicode_tables.inc
"""
import unicodedata

N = 0x110000


def ranges(name, test):
    out, start = [], None
    for c in range(N + 1):
        inside = c < N and test(chr(c))
        if inside and start is None:
            start = c
        elif not inside and start is not None:
            out.append((start, c - 1))
            start = None
    print(f"constexpr CodeRange k{name}Ranges[] = {{")
    line = ""
    for a, b in out:
        item = f"{{{a},{b}}},"
        if len(line) + len(item) > 98:
            print(line)
            line = ""
        line += item
    print(line + "\n};")


def cased(ch):
    # A sigma after a cased character is final.
    return (ch + "\u03a3").lower().endswith("\u03c2")


def ignorable(ch):
    return ("A" + ch + "\u03a3").lower().endswith("\u03c2") and not cased(ch)


def id_start(ch):
    return ch.isidentifier()


def mapping(name, fn):
    simple, special = [], []
    for c in range(N):
        if 0xD800 <= c < 0xE000:
            continue
        to = fn(chr(c))
        if to == chr(c):
            continue
        if len(to) == 1:
            simple.append((c, ord(to) - c))
        else:
            special.append((c, to))
    print(f"constexpr CaseRange k{name}Simple[] = {{")
    runs = []
    for c, delta in simple:
        if runs and runs[-1][3] == delta and c - runs[-1][1] in (1, 2) and \
           (runs[-1][2] in (0, c - runs[-1][1])):
            runs[-1][2] = c - runs[-1][1]
            runs[-1][1] = c
        else:
            runs.append([c, c, 0, delta])
    line = ""
    for a, b, step, delta in runs:
        item = f"{{{a},{b},{step or 1},{delta}}},"
        if len(line) + len(item) > 98:
            print(line)
            line = ""
        line += item
    print(line + "\n};")
    print(f"constexpr CaseSpecial k{name}Special[] = {{")
    line = ""
    for c, to in special:
        codes = [ord(x) for x in to] + [0] * (3 - len(to))
        item = "{%d,{%d,%d,%d}}," % (c, *codes)
        if len(line) + len(item) > 98:
            print(line)
            line = ""
        line += item
    print(line + "\n};")


print("// Written by generate_unicode_tables.py from Unicode", unicodedata.unidata_version + ".")
ranges("Alpha", str.isalpha)
ranges("Decimal", str.isdecimal)
ranges("Digit", str.isdigit)
ranges("Numeric", str.isnumeric)
ranges("Lower", str.islower)
ranges("Upper", str.isupper)
ranges("Title", lambda ch: unicodedata.category(ch) == "Lt")
ranges("Printable", str.isprintable)
ranges("IdStart", id_start)
ranges("IdContinue", lambda ch: ("a" + ch).isidentifier())
ranges("Cased", cased)
ranges("CaseIgnorable", ignorable)
mapping("Upper", str.upper)
mapping("Lower", lambda ch: "\u03c3" if ch == "\u03a3" else ch.lower())
mapping("Title", lambda ch: ch.title())
mapping("Fold", str.casefold)
