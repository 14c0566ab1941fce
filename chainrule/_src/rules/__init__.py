"""What a row is: its columns, and how each kind of Jacobian derives them."""
