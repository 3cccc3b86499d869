"""The sample store: one uncompressed chunk per time step, with statistics and splits beside it.

``info`` describes a store and needs neither xarray nor dask, so that training workers stay light; ``writer`` fills one.
"""
