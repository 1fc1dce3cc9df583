"""The rules of all tables, as `dryfit explain-rule` and the pages of docs find and tell them."""
