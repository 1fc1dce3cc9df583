"""Run a trtexec command line here: `dryfit.exec_trtexec` and `dryfit exec`."""
