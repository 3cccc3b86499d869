"""Sources: files of any kind become a canonical Dataset, lazily. ``open.open_fields`` is the one door.

    paths, scan         what the user named; what each file holds, by the reader of its format
    netcdf, grib, zarr_store, unzip, deepcam     the readers
    stored              what a reader says of a file
    axes, timeline      where time, latitude, longitude and levels are; one time axis of many files
    table, tables/      what each kind of source calls the channels: YAML, data
    recipes, derive     how a channel comes from what there is: the variable itself, or a formula
    fields, series      fields looked up in files; one field through all times as a lazy array
    open                all of this together

A new kind of source is a table; a new file format is a reader.
"""
