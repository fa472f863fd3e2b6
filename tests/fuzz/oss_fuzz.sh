#!/bin/bash -eu
# What OSS-Fuzz runs to build the targets, in its image for Python and in a clone of podium ($OUT is where they go).
pip3 install --require-hashes -r requirements/dev.lock
pip3 install --no-deps --no-build-isolation .
for name in $(python3 -m tests.fuzz.one_input --write-seeds "$OUT"); do
  printf 'import sys\n\nfrom tests.fuzz.one_input import fuzz\n\nfuzz("%s", sys.argv[1:])\n' "$name" > "fuzz_$name.py"
  compile_python_fuzzer "fuzz_$name.py"
done
