"""``torch.distributed.nn``: empty, as there is only one process."""
