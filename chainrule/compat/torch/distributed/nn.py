"""``torch.distributed.nn``: there are no processes to talk to, so there is nothing in it."""
