"""Logs that TensorRT's builder, its runtime and trtexec wrote on a board: read line by line, whatever their size.

`raw_lines` decodes a file, `prefixes` finds the severity and the text of a line, `messages` has the table of known
messages, `layer_lists` the lists of layers by device, `settings` what the log shows about its build, and `reading` puts
them together. Nothing here depends on a model or a device's rules: `dryfit.answers.explain_log` does.
"""
