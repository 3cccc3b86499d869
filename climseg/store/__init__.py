"""The sample store: one uncompressed chunk per time step, with statistics and splits beside it.

``info`` describes a store and needs neither xarray nor dask, so that training workers stay light. ``writer`` fills one:
``blocks`` says what one task does, ``cluster`` where tasks run, ``partial`` what is there after an interruption.
``benchmark`` measures it.
"""
