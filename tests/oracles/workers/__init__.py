"""Programs that run a library in a process of its own: `PYTHON run.py LIBRARY REQUEST.npz ANSWER.npz`.

They import numpy and the library and nothing of dryfit, so that they run in any Python from 3.7 on, such as one that
an old library needs.
"""
