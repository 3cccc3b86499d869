"""Inspection: what an input is, what is wrong with it, and what it is good for, before any work is started on it.

report            what an inspection says: dataclasses of plain values, the content of the JSON file
files, axes       the files; their times and grid
channel           how each channel comes from the files
values, remarks   a sample of time steps: minimum, mean, maximum; what is strange in them
verdicts          ready for a new network, for a heuristic, or what is lacking
inspect           all of this together; ``inspect_input`` is the door for notebooks
"""
