"""The benchmarks: each module measures one part of the work; ``run(configuration)`` prints a table, returns figures."""
