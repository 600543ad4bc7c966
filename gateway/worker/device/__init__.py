"""The worker's model on a device: paged cache, recorded passes, kernels of its own."""
