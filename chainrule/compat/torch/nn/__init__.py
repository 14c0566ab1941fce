"""Parts of ``torch.nn`` that programs import from where PyTorch keeps them."""
