"""What is written about dryfit; a package, so that the code of its pages is imported as `docs.pages`."""
