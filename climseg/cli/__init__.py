"""The command line: the only place that knows Hydra, conf/ and the terminal."""
