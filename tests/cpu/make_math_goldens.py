#!/usr/bin/env python3
"""Writes tests/data/cpu/math.txt: values of mpmath at 60 digits, rounded to double, for test_math.c.

Run from the root of the repository: python3 tests/cpu/make_math_goldens.py > tests/data/cpu/math.txt
"""
import random
import sys

import mpmath

mpmath.mp.dps = 60


def show(*values):
    print(*[float(v).hex() if not isinstance(v, str) else v for v in values])


def angles(rng):
    yield from [0.0, 0.5, 1.0, 2.0, 3.0, 100.0, 1e6, 2.0**20, 2.0**31, 2.0**40]
    for k in [1, 2, 3, 4, 7, 1000, 12345, 650000, 2**33]:  # next to the zeros of both functions
        x = float(k * mpmath.pi / 2)
        yield from [x, -x]
    for _ in range(60):
        yield rng.uniform(-10, 10)
        yield rng.uniform(0, 1.1e6)
    for _ in range(60):  # as RoPE makes them
        yield rng.randrange(131072) * float(mpmath.mpf(rng.choice([10000, 100000, 500000, 1000000])) ** (-rng.random()))


def powers(rng):
    for base in [10000.0, 100000.0, 500000.0, 1000000.0, 5000000.0, 150000.0, 8000000.0, 1e9]:
        for n in [20, 32, 64, 80, 96, 128, 256]:
            for i in sorted({0, 1, n // 4, rng.randrange(n // 2), n // 2 - 1}):
                yield base, -2.0 * i / n
    yield from [(2.0, 10.0), (2.0, -3.0), (1.0, 5.0), (10.0, -2.0), (0.5, 0.5), (1.5, 700.25), (1e-300, 0.75)]
    for _ in range(60):
        yield rng.uniform(0.01, 100), rng.uniform(-40, 40)


def main():
    rng = random.Random(20240611)
    print("# mpmath %s, 60 digits; tests/cpu/make_math_goldens.py" % mpmath.__version__)
    for x in angles(rng):
        show("sincos", x, mpmath.sin(mpmath.mpf(x)), mpmath.cos(mpmath.mpf(x)))
    for base, y in powers(rng):
        show("pow", base, y, mpmath.mpf(base) ** mpmath.mpf(y))


sys.exit(main())
