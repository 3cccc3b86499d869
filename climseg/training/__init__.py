"""Training: Lightning lives here. It leaves a checkpoint that says everything that prediction needs."""
