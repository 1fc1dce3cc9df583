"""Modules that behave as `tensorrt` 8.6, 10.16 and 11.1, and what runs programs with them, on dryfit's public API.

`dryfit tensorrt run --api 10.16 -- python script.py` runs a program that says `import tensorrt` without TensorRT, a GPU
or its driver. Importing this package changes nothing: `dryfit_tensorrt.imports` installs the names for one process, and
`dryfit_tensorrt.running` starts processes in which it is installed.

This file imports nothing, since each Python process of a shell that `dryfit tensorrt env` set up loads it at its start.
"""
