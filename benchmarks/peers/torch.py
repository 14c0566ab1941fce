"""PyTorch on the CPU. The number of threads is set by the environment, like for the other libraries."""

import torch

import adbench_peers.torch
import programs
import surface
import works

VERSION = f"torch {torch.__version__}"
WORKS = works.works(torch) | surface.works(torch) | programs.works(torch)
WORKS |= adbench_peers.torch.WORKS | programs.ten(torch, torch.func.grad, torch.from_numpy)
