"""What a row of the table is: its columns, how each kind derives them, and what rules share. Nothing here knows tensors."""
