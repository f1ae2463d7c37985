"""PyTorch DistributedDataParallel with automatic mixed precision, started by torchrun."""
