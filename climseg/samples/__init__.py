"""The store read into tensors, without dask: the only door from labelled arrays to tensors."""
