"""The kit that goes to a board: models, how to build them there, and the two scripts that do it.

`manifest` is its table of contents, `archive` reads it and its results without trust, `writing` makes it, `probes` are
small networks at the limits of the rules, and `run.sh` and `on_board.py` run on the board. These two need nothing but a
shell, Python 3.6 and trtexec, and import nothing of dryfit.
"""
